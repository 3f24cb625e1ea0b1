//===- Termination.cpp - Whether a step surely ends -------------*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Baechi/Analysis/Termination.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"
#include "mlir/Interfaces/CallInterfaces.h"
#include "mlir/Interfaces/ControlFlowInterfaces.h"
#include "mlir/Interfaces/LoopLikeInterface.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/SmallPtrSet.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace baechi;

/// Whether a bound of a loop is a number, or follows from numbers and counters
/// of loops around it: data would make the step as long as they please.
static bool isTold(OpFoldResult bound) {
  if (getConstantIntValue(bound))
    return true;
  SmallVector<Value> open{cast<Value>(bound)};
  llvm::SmallPtrSet<Operation *, 8> seen;
  while (!open.empty()) {
    Value value = open.pop_back_val();
    if (auto argument = dyn_cast<BlockArgument>(value)) {
      auto around =
          dyn_cast<LoopLikeOpInterface>(argument.getOwner()->getParentOp());
      std::optional<SmallVector<Value>> counters;
      if (around)
        counters = around.getLoopInductionVars();
      if (!counters || !llvm::is_contained(*counters, argument))
        return false;
      continue;
    }
    Operation *op = value.getDefiningOp();
    if (!isPure(op) || op->getNumRegions() > 0 ||
        llvm::any_of(op->getOperandTypes(), llvm::IsaPred<ShapedType>))
      return false;
    if (seen.insert(op).second)
      llvm::append_range(open, op->getOperands());
  }
  return true;
}

/// Whether the last number that a loop counts is one.
static bool overflows(OpFoldResult upper, OpFoldResult step) {
  int64_t last = 0;
  return llvm::AddOverflow(getConstantIntValue(upper).value_or(0),
                           getConstantIntValue(step).value_or(0), last);
}

/// Whether a loop counts: by known steps that lead on, between bounds that no
/// data tell.
static bool isCounted(LoopLikeOpInterface loop) {
  std::optional<SmallVector<OpFoldResult>> steps = loop.getLoopSteps(),
                                           lower = loop.getLoopLowerBounds(),
                                           upper = loop.getLoopUpperBounds();
  if (!steps || !lower || !upper ||
      llvm::any_of(llvm::concat<OpFoldResult>(*lower, *upper),
                   [](OpFoldResult bound) { return !isTold(bound); }))
    return false;
  return llvm::all_of(llvm::zip_equal(*upper, *steps), [](auto each) {
    auto [end, step] = each;
    return getConstantIntValue(step).value_or(0) > 0 && !overflows(end, step);
  });
}

/// Whether the regions of \p op are run a bounded number of times.
static bool isBounded(Operation *op) {
  // A block of several may come back to one before it.
  if (llvm::any_of(op->getRegions(), [](Region &region) {
        return !region.empty() && !region.hasOneBlock();
      }))
    return false;
  if (op->getNumRegions() == 0 ||
      isa<linalg::LinalgOp, tensor::PadOp, tensor::GenerateOp, scf::ReduceOp,
          scf::InParallelOp>(op))
    return true;
  if (auto loop = dyn_cast<LoopLikeOpInterface>(op))
    return isCounted(loop);
  auto branch = dyn_cast<RegionBranchOpInterface>(op);
  return branch && !branch.hasLoop();
}

namespace {
class Termination {
public:
  bool ends(FunctionOpInterface function) {
    auto [it, isNew] = known.try_emplace(function, false); // if it calls itself
    if (!isNew)
      return it->second;
    Region &body = function.getFunctionBody();
    bool result =
        body.hasOneBlock() && !body.walk([&](Operation *op) {
                                     return ends(op) ? WalkResult::advance()
                                                     : WalkResult::interrupt();
                                   })
                                   .wasInterrupted();
    return known[function] = result;
  }

private:
  bool ends(Operation *op) {
    // What has left MLIR's structures may be anything.
    if (!op->isRegistered() || op->getName().getDialectNamespace() == "llvm")
      return false;
    auto call = dyn_cast<CallOpInterface>(op);
    if (!call)
      return isBounded(op);
    auto callee = dyn_cast_or_null<FunctionOpInterface>(
        call.resolveCallableInTable(&symbols));
    return callee && ends(callee);
  }

  llvm::DenseMap<Operation *, bool> known;
  SymbolTableCollection symbols;
};
} // namespace

bool baechi::surelyEnds(FunctionOpInterface function) {
  return Termination().ends(function);
}

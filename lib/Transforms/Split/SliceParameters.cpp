//===- SliceParameters.cpp - Slices of parameters with owners -------------===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// P3 (Jayarajan et al., "Priority-based Parameter Propagation for Distributed
/// DNN Training", MLSys 2019) cuts arrays in slices that are pushed, summed,
/// updated and pulled by themselves. Here a slice is a piece of the parameter,
/// which the step stores, with all that computes its next value of the joined
/// gradient. That is a cut along the outermost dimension that begins at the
/// next value and is followed through what is elementwise alone, so no bit
/// changes; replicas go on reading wholes, which each puts together.
///
//===----------------------------------------------------------------------===//

#include "Baechi/Analysis/Program.h"
#include "Baechi/Analysis/ReplicaSides.h"
#include "Baechi/Dialect/Pieces.h"
#include "Baechi/Dialect/Replicas.h"
#include "Baechi/Transforms/Replicas/Passes.h"
#include "Pieces.h"
#include "Storage.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/Remarks.h"
#include <cmath>
#include <numeric>

namespace baechi {
#define GEN_PASS_DEF_SLICEPARAMETERS
#include "Baechi/Transforms/Replicas/Passes.h.inc"
} // namespace baechi

using namespace mlir;
using namespace baechi;
using namespace baechi::split;

/// Smaller messages cost more than what they carry, whatever a model says.
static constexpr int64_t kLeastBytes = 16 << 10;

static bool isElementwise(Operation *op) {
  if (auto loops = dyn_cast<linalg::LinalgOp>(op))
    return loops.getNumReductionLoops() == 0;
  return isa<tensor::EmptyOp>(op) || op->hasTrait<OpTrait::ConstantLike>() ||
         op->hasTrait<OpTrait::Elementwise>();
}

/// The first dimension that has several elements.
static unsigned outermost(RankedTensorType type) {
  unsigned dim = 0;
  while (dim + 1 < type.getRank() && type.getDimSize(dim) == 1)
    ++dim;
  return dim;
}

namespace {
class Slicer {
public:
  Slicer(func::FuncOp step, bool factors)
      : step(step), block(step.front()), end(block.getTerminator()),
        factors(factors) {
    for (unsigned number = 0; number < step.getNumArguments(); ++number)
      if (auto by = nextValueOf(number))
        nextValues.insert(*by);
    sides = replicaSides(step);
    llvm::DenseSet<Operation *> leads = leadingToNextValues();
    for (Operation &op : block.without_terminator())
      if (!leads.contains(&op) || !isElementwise(&op) || sides.contains(&op))
        plan.kept.insert(&op);
  }

  /// What replicas read and owners update, in bytes.
  int64_t exchangedBytes() {
    int64_t bytes = 0;
    for (BlockArgument argument : step.getArguments())
      if (isParameter(argument))
        bytes += tensorBytes(argument.getType(), false).value_or(0);
    return bytes;
  }

  void slice(int64_t sliceBytes) {
    for (BlockArgument argument : step.getArguments())
      if (isParameter(argument))
        slice(argument, sliceBytes);
    llvm::DenseSet<Operation *> before;
    for (auto each : step.getOps<tensor::ExtractSliceOp>())
      before.insert(each);
    rewriteInPieces(step, plan, Stored::WithWholes);
    // Gradients: what an owner does not have is sent by itself.
    for (auto each : step.getOps<tensor::ExtractSliceOp>())
      if (!before.contains(each))
        each->setAttr(kCopied, UnitAttr::get(step.getContext()));
  }

private:
  std::optional<unsigned> nextValueOf(unsigned argument) {
    auto by =
        step.getArgAttrOfType<IntegerAttr>(argument, BaechiDialect::kUpdatedBy);
    return by ? std::optional<unsigned>(by.getInt()) : std::nullopt;
  }

  /// Operations whose results end in next values and nowhere else.
  llvm::DenseSet<Operation *> leadingToNextValues() {
    llvm::DenseSet<Operation *> leads;
    for (Operation &op : llvm::reverse(block.without_terminator()))
      if (llvm::all_of(op.getUses(), [&](OpOperand &use) {
            return use.getOwner() == end
                       ? nextValues.contains(use.getOperandNumber())
                       : leads.contains(
                             block.findAncestorOpInBlock(*use.getOwner()));
          }))
        leads.insert(&op);
    return leads;
  }

  /// Whether the step updates it and others than updates read it.
  bool isParameter(BlockArgument argument) {
    return nextValueOf(argument.getArgNumber()) &&
           llvm::any_of(argument.getUsers(), [&](Operation *user) {
             return plan.kept.contains(block.findAncestorOpInBlock(*user));
           });
  }

  void slice(BlockArgument argument, int64_t sliceBytes) {
    auto type = dyn_cast<RankedTensorType>(argument.getType());
    std::optional<int64_t> bytes = tensorBytes(argument.getType(), false);
    if (!type || !bytes || *bytes <= sliceBytes ||
        step.getArgAttr(argument.getArgNumber(), kPiece))
      return;
    unsigned dim = outermost(type);
    SmallVector<int64_t> sizes = sizesOf(
        type.getDimSize(dim), *bytes / type.getDimSize(dim), sliceBytes);
    if (sizes.size() < 2)
      return;
    Value next = end->getOperand(*nextValueOf(argument.getArgNumber()));
    // Constants that several updates read lead from one to the others.
    if (plan.cutOf.contains(next.getDefiningOp()))
      return;
    Cut cut = followCut(next, {dim}, sizes, PlanOptions(), plan);
    Operation *at = nullptr;
    if (std::string why = whatForbids(cut, argument, next, at); !why.empty())
      return remarkWhole(argument, at, why);
    for (const auto &[op, how] : cut.operations)
      plan.cutOf[op] = plan.cuts.size();
    remark::passed(argument.getLoc(), about("sliced"))
        << remark::metric("Argument", int64_t(argument.getArgNumber()))
        << remark::metric("Slices", int64_t(sizes.size()))
        << remark::metric("Rows", sizes.front());
    plan.cuts.push_back(std::move(cut));
  }

  /// Slices of one size, and one of what is left; each begins where tensors
  /// may.
  static SmallVector<int64_t> sizesOf(int64_t rows, int64_t rowBytes,
                                      int64_t sliceBytes) {
    int64_t unit = kAlignment / std::gcd(rowBytes, kAlignment);
    int64_t most = std::max(unit, sliceBytes / rowBytes / unit * unit);
    int64_t count = llvm::divideCeil(rows, most);
    int64_t each = llvm::alignTo(llvm::divideCeil(rows, count), unit);
    SmallVector<int64_t> sizes(rows / each, each);
    if (rows % each)
      sizes.push_back(rows % each);
    return sizes;
  }

  /// Why \p cut, which begins at the \p next value of \p argument, is not
  /// taken, and \p at which operation; empty: it is.
  std::string whatForbids(const Cut &cut, BlockArgument argument, Value next,
                          Operation *&at) {
    at = rootOf(next).getDefiningOp();
    if (!cut.values.contains(argument) ||
        !cut.operations.contains(next.getDefiningOp()))
      return "what computes its next value is not elementwise";
    for (const auto &[value, position] : cut.values) {
      at = value.getDefiningOp();
      if (auto other = dyn_cast<BlockArgument>(value)) {
        std::optional<unsigned> by = nextValueOf(other.getArgNumber());
        auto found =
            by ? cut.values.find(end->getOperand(*by)) : cut.values.end();
        if (by && (found == cut.values.end() || found->second != position))
          return "an argument that its next value is computed of is not "
                 "updated in the same slices";
      } else if (cut.operations.contains(at)) {
        for (Operation *user : at->getUsers())
          if (Operation *reader = block.findAncestorOpInBlock(*user);
              reader != end && !cut.operations.contains(reader)) {
            at = reader;
            return "what reads all of its gradient, or of what is computed of "
                   "it, is not elementwise";
          }
        continue;
      }
      if (factors && hasSmallerFactors(at))
        return "the factors of its gradient are fewer bytes, and sent in its "
               "place";
      if (auto type = dyn_cast<RankedTensorType>(value.getType());
          !type || position.outer != 1 || position.dim != outermost(type))
        return "its slices do not lie in one piece in what its next value is "
               "computed of";
    }
    return "";
  }

  /// Whether \p op computes a replica's part of a gradient, maybe transposed,
  /// of factors of fewer bytes than that (--baechi-pin-replicas=factors).
  bool hasSmallerFactors(Operation *op) const {
    auto bytesOf = [](Value value) {
      return tensorBytes(value.getType(), false).value_or(0);
    };
    auto product = dyn_cast_or_null<linalg::LinalgOp>(op);
    while (product && product.getNumReductionLoops() == 0 &&
           product.getNumDpsInputs() == 1 &&
           bytesOf(product.getDpsInputs()[0]) == bytesOf(product->getResult(0)))
      product = dyn_cast_or_null<linalg::LinalgOp>(
          rootOf(product.getDpsInputs()[0]).getDefiningOp());
    if (!product || !sides.contains(product) ||
        product.getNumReductionLoops() == 0)
      return false;
    int64_t read = 0;
    for (Value factor : product.getDpsInputs())
      read += bytesOf(factor);
    return read < bytesOf(product->getResult(0));
  }

  remark::RemarkOpts about(StringRef name) {
    return remark::RemarkOpts::name(name)
        .category("baechi-slice-parameters")
        .function(step.getName());
  }

  void remarkWhole(BlockArgument argument, Operation *at, StringRef why) {
    remark::missed(at ? at->getLoc() : argument.getLoc(), about("not-sliced"))
        << remark::metric("Argument", int64_t(argument.getArgNumber()))
        << remark::metric("Reason", why);
  }

  func::FuncOp step;
  Block &block;
  Operation *end;
  bool factors; ///< are sent where they are fewer bytes than gradients
  llvm::DenseMap<Operation *, int64_t> sides; ///< the replicas of operations
  llvm::DenseSet<unsigned> nextValues;        ///< numbers of results
  SplitPlan plan;
};

struct SliceParameters
    : public baechi::impl::SliceParametersBase<SliceParameters> {
  using SliceParametersBase::SliceParametersBase;

  void runOnOperation() override {
    FailureOr<func::FuncOp> step = findStepToStore(getOperation());
    if (failed(step))
      return signalPassFailure();
    auto replicas = (*step)->getAttrOfType<IntegerAttr>(kReplicas);
    if (!replicas)
      return markAllAnalysesPreserved();
    Slicer slicer(*step, factors);
    int64_t bytes = sliceBytes;
    if (bytes <= 0)
      bytes = bestBytes(slicer.exchangedBytes(), replicas.getInt());
    if (bytes > 0)
      slicer.slice(bytes);
  }

private:
  /// A device sends b bytes a step in b / s messages, each of which takes a
  /// latency (l bytes' time) more, and the last slice goes there and back: the
  /// least of b l / s + 2 s. 0: messages cost nothing, and slices gain nothing.
  int64_t bestBytes(int64_t parameters, int64_t replicas) const {
    if (latencyBytes <= 0)
      return 0;
    double sent = 2.0 * double(parameters) * double(replicas - 1) / replicas;
    auto best = int64_t(std::sqrt(sent * double(latencyBytes) / 2));
    return std::max({best, latencyBytes.getValue(), kLeastBytes});
  }
};
} // namespace

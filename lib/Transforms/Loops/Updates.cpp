//===- Updates.cpp - Reductions within loops -*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "LoopModel.h"
#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Interfaces/LoopLikeInterface.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace baechi;

namespace {
/// Which operation, and whether its order changes no bit.
struct Combiner {
  std::string name;
  bool anyOrder = false;
  bool onlyLeft = false; ///< x - f, not f - x
};

bool reassociates(Operation *op) {
  auto flags = dyn_cast<arith::ArithFastMathInterface>(op);
  return flags && bitEnumContainsAll(flags.getFastMathFlagsAttr().getValue(),
                                     arith::FastMathFlags::reassoc);
}

std::optional<Combiner> combinerOf(Operation *op) {
  return llvm::TypeSwitch<Operation *, std::optional<Combiner>>(op)
      .Case([&](arith::AddFOp) { return Combiner{"", reassociates(op)}; })
      .Case([&](arith::SubFOp) { return Combiner{"", reassociates(op), true}; })
      .Case(
          [&](arith::MulFOp) { return Combiner{"product", reassociates(op)}; })
      .Case([](arith::AddIOp) { return Combiner{"", true}; })
      .Case([](arith::SubIOp) { return Combiner{"", true, true}; })
      .Case([](arith::MulIOp) { return Combiner{"product", true}; })
      .Case<arith::MaximumFOp, arith::MaxSIOp, arith::MaxUIOp>(
          [](auto of) { return Combiner{of.getOperationName().str(), true}; })
      .Case<arith::MinimumFOp, arith::MinSIOp, arith::MinUIOp>(
          [](auto of) { return Combiner{of.getOperationName().str(), true}; })
      .Case<arith::AndIOp, arith::OrIOp, arith::XOrIOp>(
          [](auto of) { return Combiner{of.getOperationName().str(), true}; })
      .Default(std::nullopt);
}

/// Longer sums than anybody writes are no updates: they are followed by a
/// function that calls itself.
constexpr int kMostSummands = 1000;

/// Follows \p value, which is used once, to the \p end that it is an update of,
/// through operations of one kind and loops that carry the sum.
bool follow(Value value, Value end, std::optional<Combiner> &combiner,
            int left = kMostSummands) {
  if (value == end)
    return true;
  if (!value.hasOneUse() || left == 0)
    return false;
  Operation *op = value.getDefiningOp();
  if (!op)
    return false;
  if (auto inner = dyn_cast<LoopLikeOpInterface>(op)) {
    auto result = cast<OpResult>(value);
    OpOperand *init = inner.getTiedLoopInit(result);
    BlockArgument carried = inner.getTiedLoopRegionIterArg(result);
    OpOperand *yielded = inner.getTiedLoopYieldedValue(carried);
    return init && carried && yielded && carried.hasOneUse() &&
           yielded->get() != Value(carried) &&
           follow(yielded->get(), carried, combiner, left - 1) &&
           follow(init->get(), end, combiner, left - 1);
  }
  std::optional<Combiner> found = combinerOf(op);
  if (!found || (combiner && combiner->name != found->name))
    return false;
  found->anyOrder &= !combiner || combiner->anyOrder;
  for (unsigned side = 0; side < (found->onlyLeft ? 1u : 2u); ++side) {
    std::optional<Combiner> through = found;
    if (follow(op->getOperand(side), end, through, left - 1)) {
      combiner = through;
      return true;
    }
  }
  return false;
}

bool atOnePlace(Operation *load, Operation *store) {
  if (auto from = dyn_cast<memref::LoadOp>(load)) {
    auto to = dyn_cast<memref::StoreOp>(store);
    return to && from.getMemRef() == to.getMemRef() &&
           llvm::equal(from.getIndices(), to.getIndices());
  }
  auto from = dyn_cast<affine::AffineLoadOp>(load);
  auto to = dyn_cast<affine::AffineStoreOp>(store);
  return from && to && from.getMemRef() == to.getMemRef() &&
         from.getAffineMap() == to.getAffineMap() &&
         llvm::equal(from.getMapOperands(), to.getMapOperands());
}
} // namespace

std::optional<Update>
baechi::updateOf(Operation *store,
                 const llvm::SmallPtrSetImpl<Operation *> &uses) {
  if (!isa<memref::StoreOp, affine::AffineStoreOp>(store))
    return std::nullopt;
  Value stored = store->getOperand(0);
  for (Operation *load : uses) {
    if (load->getBlock() != store->getBlock() || !atOnePlace(load, store) ||
        !load->isBeforeInBlock(store) || !load->getResult(0).hasOneUse())
      continue;
    std::optional<Combiner> combiner;
    if (!follow(stored, load->getResult(0), combiner) || !combiner)
      continue;
    // Between the two nothing else may touch the element.
    bool alone = true;
    for (Operation *op = load->getNextNode(); op != store && alone;
         op = op->getNextNode())
      op->walk([&](Operation *inner) { alone &= !uses.contains(inner); });
    if (alone)
      return Update{load, store, combiner->name, combiner->anyOrder};
  }
  return std::nullopt;
}

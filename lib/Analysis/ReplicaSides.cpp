//===- ReplicaSides.cpp - Which replica an operation is of ----------------===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Baechi/Analysis/ReplicaSides.h"
#include "Baechi/Dialect/Pieces.h"
#include "Baechi/Dialect/Replicas.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Transforms/RegionUtils.h"
#include "llvm/ADT/SetVector.h"
#include "llvm/ADT/bit.h"

using namespace mlir;
using namespace baechi;

namespace {
/// What is known of a value: the replicas whose parts it is made of, a bit
/// each, and whether any part of a batch is behind it.
struct Parts {
  uint64_t replicas = 0;
  bool batched = false;
};

class Sides {
public:
  Sides(func::FuncOp step, int64_t replicas)
      : step(step), block(step.front()), replicas(replicas) {}

  llvm::DenseMap<Operation *, int64_t> find() {
    for (BlockArgument argument : step.getArguments())
      if (isBatched(argument))
        if (auto piece = step.getArgAttrOfType<PieceAttr>(
                argument.getArgNumber(), kPiece))
          known[argument] = {uint64_t(1) << piece.getStart() / piece.getSize(),
                             true};
    for (Operation &op : block.without_terminator())
      visit(&op);
    for (Operation &op : llvm::reverse(block.without_terminator()))
      followReaders(&op);
    return sides;
  }

private:
  void visit(Operation *op) {
    Parts read;
    auto add = [&](Value value) {
      Parts parts = known.lookup(value);
      read.replicas |= parts.replicas;
      read.batched |= parts.batched;
    };
    for (Value operand : op->getOperands())
      add(operand);
    SetVector<Value> captured;
    getUsedValuesDefinedAbove(op->getRegions(), captured);
    for (Value value : captured)
      add(value);
    if (auto slice = dyn_cast<tensor::ExtractSliceOp>(op))
      if (std::optional<int64_t> part = partOf(slice, read))
        read = {uint64_t(1) << *part, true};
    // Insertions are on their way to a whole until all parts are there.
    bool several = llvm::popcount(read.replicas) > 1;
    if (several && !isa<tensor::InsertSliceOp>(op))
      read.replicas = 0;
    if (llvm::popcount(read.replicas) == 1)
      sides[op] = llvm::countr_zero(read.replicas);
    for (Value result : op->getResults())
      known[result] = read;
  }

  /// The replica whose part of a batch, or of a whole that was put together
  /// again, \p slice is.
  std::optional<int64_t> partOf(tensor::ExtractSliceOp slice, Parts source) {
    ArrayRef<int64_t> whole = slice.getSourceType().getShape();
    if (!isBatched(slice.getSource()) &&
        !(source.batched && source.replicas == 0) &&
        llvm::popcount(source.replicas) < 2)
      return std::nullopt;
    std::optional<int64_t> part;
    for (auto [dim, extent] : llvm::enumerate(whole)) {
      int64_t size = slice.getStaticSizes()[dim];
      int64_t offset = slice.getStaticOffsets()[dim];
      if (ShapedType::isDynamic(offset) || slice.getStaticStrides()[dim] != 1)
        return std::nullopt;
      if (size == extent)
        continue;
      if (part || size == 0 || size * replicas != extent || offset % size != 0)
        return std::nullopt;
      part = offset / size;
    }
    return part;
  }

  /// A batch's argument, also reshaped.
  bool isBatched(Value value) {
    while (Operation *op = value.getDefiningOp()) {
      if (!isa<tensor::ExpandShapeOp, tensor::CollapseShapeOp>(op))
        return false;
      value = op->getOperand(0);
    }
    auto argument = cast<BlockArgument>(value);
    return argument.getOwner() == &block &&
           step.getArgAttr(argument.getArgNumber(), kBatched);
  }

  /// What no batch is behind, and one replica alone reads, is that one's; the
  /// first insertions into a whole are nobody's.
  void followReaders(Operation *op) {
    std::optional<int64_t> side;
    for (Operation *user : op->getUsers()) {
      auto found = sides.find(block.findAncestorOpInBlock(*user));
      if (found == sides.end() || (side && *side != found->second)) {
        if (isa<tensor::InsertSliceOp>(op) && isa<tensor::InsertSliceOp>(user))
          sides.erase(op);
        return;
      }
      side = found->second;
    }
    if (side && op->getNumResults() > 0 &&
        !known.lookup(op->getResult(0)).batched)
      sides.try_emplace(op, *side);
  }

  func::FuncOp step;
  Block &block;
  int64_t replicas;
  llvm::DenseMap<Value, Parts> known;
  llvm::DenseMap<Operation *, int64_t> sides;
};
} // namespace

llvm::DenseMap<Operation *, int64_t> baechi::replicaSides(func::FuncOp step) {
  auto replicas = step->getAttrOfType<IntegerAttr>(kReplicas);
  if (!replicas || replicas.getInt() > 64)
    return llvm::DenseMap<Operation *, int64_t>();
  return Sides(step, replicas.getInt()).find();
}

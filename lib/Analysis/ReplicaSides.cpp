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
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace baechi;

namespace {
/// What is known of a value: the replicas that it is of, a bit each, all where
/// nothing tells them apart, and whether any part of a batch is behind it.
struct Parts {
  uint64_t replicas;
  bool batched = false;
};

class Sides {
public:
  Sides(func::FuncOp step, int64_t replicas)
      : step(step), block(step.front()), replicas(replicas),
        all(llvm::maskTrailingOnes<uint64_t>(replicas)) {}

  llvm::DenseMap<Operation *, int64_t> find() {
    for (BlockArgument argument : step.getArguments())
      if (auto piece =
              step.getArgAttrOfType<PieceAttr>(argument.getArgNumber(), kPiece);
          piece && isBatched(argument))
        if (std::optional<uint64_t> readers = readersOf(
                argument, piece.getDim(), piece.getStart() / piece.getSize()))
          known.try_emplace(argument, Parts{*readers, true});
    for (Operation &op : block.without_terminator())
      visit(&op);
    for (Operation &op : llvm::reverse(block.without_terminator()))
      followReaders(&op);
    return sides;
  }

private:
  Parts of(Value value) const {
    auto found = known.find(value);
    return found == known.end() ? Parts{all} : found->second;
  }

  void visit(Operation *op) {
    SetVector<Value> read(op->operand_begin(), op->operand_end());
    getUsedValuesDefinedAbove(op->getRegions(), read);
    // Of those that have all that it reads; where nobody has, it joins values.
    Parts made{all};
    uint64_t some = 0;
    for (Value value : read) {
      Parts parts = of(value);
      made.replicas &= parts.replicas;
      made.batched |= parts.batched;
      some |= parts.replicas == all ? 0 : parts.replicas;
    }
    // Insertions are on their way to a whole until all parts are there.
    if (made.replicas == 0 || (isa<tensor::InsertSliceOp>(op) && some != 0))
      made.replicas = some;
    if (auto slice = dyn_cast<tensor::ExtractSliceOp>(op))
      if (std::optional<uint64_t> part = partOf(slice, made))
        made = {*part, true};
    if (llvm::popcount(made.replicas) == 1)
      sides[op] = llvm::countr_zero(made.replicas);
    for (Value result : op->getResults())
      known.insert_or_assign(result, made);
  }

  /// The replicas whose part of a batch, or of a whole that was put together
  /// again, \p slice is.
  std::optional<uint64_t> partOf(tensor::ExtractSliceOp slice, Parts source) {
    BlockArgument batch = batchOf(slice.getSource());
    if (batch && known.contains(batch)) // a part, of which this is a part
      return std::nullopt;
    if (!batch && !(source.batched && source.replicas == all))
      return std::nullopt;
    std::optional<uint64_t> part;
    for (auto [dim, extent] :
         llvm::enumerate(slice.getSourceType().getShape())) {
      int64_t size = slice.getStaticSizes()[dim];
      int64_t offset = slice.getStaticOffsets()[dim];
      if (ShapedType::isDynamic(offset) || slice.getStaticStrides()[dim] != 1)
        return std::nullopt;
      if (size == extent)
        continue;
      if (size == 0 || offset % size != 0)
        return std::nullopt;
      if (batch && layoutOf(batch)) {
        // As it is written, which reshaping does not keep.
        std::optional<uint64_t> readers =
            batch == slice.getSource() &&
                    size * partsAlong(batch, dim) == extent
                ? readersOf(batch, dim, offset / size)
                : std::nullopt;
        if (!readers)
          return std::nullopt;
        part = part.value_or(all) & *readers;
        continue;
      }
      if (part || size * replicas != extent)
        return std::nullopt;
      part = uint64_t(1) << offset / size;
    }
    return part;
  }

  /// The replicas of each part of \p argument along each dimension, where it
  /// is said.
  ArrayAttr layoutOf(BlockArgument argument) {
    return step.getArgAttrOfType<ArrayAttr>(argument.getArgNumber(), kBatched);
  }

  int64_t partsAlong(BlockArgument argument, unsigned dim) {
    ArrayAttr layout = layoutOf(argument);
    return dim < layout.size() ? cast<DenseI64ArrayAttr>(layout[dim]).size()
                               : 0;
  }

  /// Who has part \p number of \p argument along \p dim.
  std::optional<uint64_t> readersOf(BlockArgument argument, unsigned dim,
                                    int64_t number) {
    if (!layoutOf(argument))
      return uint64_t(1) << number;
    if (number >= partsAlong(argument, dim))
      return std::nullopt;
    ArrayRef<int64_t> parts = cast<DenseI64ArrayAttr>(layoutOf(argument)[dim]);
    return uint64_t(parts[number]) & all;
  }

  bool isBatched(BlockArgument argument) {
    return bool(step.getArgAttr(argument.getArgNumber(), kBatched));
  }

  /// The batch that \p value is, also reshaped.
  BlockArgument batchOf(Value value) {
    while (Operation *op = value.getDefiningOp()) {
      if (!isa<tensor::ExpandShapeOp, tensor::CollapseShapeOp>(op))
        return {};
      value = op->getOperand(0);
    }
    auto argument = cast<BlockArgument>(value);
    return argument.getOwner() == &block && isBatched(argument)
               ? argument
               : BlockArgument();
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
    if (side && op->getNumResults() > 0 && !of(op->getResult(0)).batched)
      sides.try_emplace(op, *side);
  }

  func::FuncOp step;
  Block &block;
  int64_t replicas;
  uint64_t all; ///< a bit for each
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

//===- Splits.cpp - How an operation can be cut into pieces ---------------===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Baechi/Analysis/Splits.h"
#include "SplitLoops.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"

using namespace mlir;
using namespace baechi;

/// A cut of an operation that moves elements, where each tensor has at most one
/// position.
static OperationCut parallelCut(Operation *op, int64_t extent) {
  OperationCut cut;
  cut.extent = extent;
  cut.operands.resize(op->getNumOperands());
  cut.results.resize(op->getNumResults());
  return cut;
}

//===----------------------------------------------------------------------===//
// Reshapes
//===----------------------------------------------------------------------===//

/// From a dimension of the tensor with more dimensions to the other's.
static CutPosition collapsed(ArrayRef<ReassociationIndices> groups,
                             ArrayRef<int64_t> expandedShape,
                             CutPosition position) {
  for (auto [dim, group] : llvm::enumerate(groups)) {
    if (!llvm::is_contained(group, int64_t(position.dim)))
      continue;
    CutPosition found{unsigned(dim), position.outer, position.inner};
    for (int64_t member : group) {
      if (member < int64_t(position.dim))
        found.outer *= expandedShape[member];
      if (member > int64_t(position.dim))
        found.inner *= expandedShape[member];
    }
    return found;
  }
  llvm_unreachable("a dimension is in one group");
}

/// And back: the extent must lie within one of the group's dimensions.
static std::optional<CutPosition>
expanded(ArrayRef<ReassociationIndices> groups, ArrayRef<int64_t> expandedShape,
         CutPosition position, int64_t extent) {
  const ReassociationIndices &group = groups[position.dim];
  for (auto [at, member] : llvm::enumerate(group)) {
    int64_t before = 1, behind = 1;
    for (int64_t other : ArrayRef(group).take_front(at))
      before *= expandedShape[other];
    for (int64_t other : ArrayRef(group).drop_front(at + 1))
      behind *= expandedShape[other];
    if (position.outer % before || position.inner % behind)
      continue;
    CutPosition found{unsigned(member), position.outer / before,
                      position.inner / behind};
    if (found.outer * extent * found.inner == expandedShape[member])
      return found;
  }
  return std::nullopt;
}

/// Where a reshape's two tensors are cut. \p fromSource: \p position is the
/// operand's.
template <typename Reshape>
static std::optional<OperationCut>
cutReshape(Reshape op, bool fromSource, CutPosition position, int64_t extent,
           std::string &why) {
  constexpr bool expands = std::is_same_v<Reshape, tensor::ExpandShapeOp>;
  RankedTensorType source = op.getSrcType(), result = op.getResultType();
  ArrayRef<int64_t> shape = (expands ? result : source).getShape();
  SmallVector<ReassociationIndices> groups = op.getReassociationIndices();
  std::optional<CutPosition> other =
      fromSource == expands ? expanded(groups, shape, position, extent)
                            : std::optional(collapsed(groups, shape, position));
  if (!other) {
    why = "it reshapes the dimension into parts that are no pieces";
    return std::nullopt;
  }
  OperationCut cut = parallelCut(op, extent);
  cut.operands[0] = fromSource ? position : *other;
  cut.results[0] = fromSource ? *other : position;
  return cut;
}

//===----------------------------------------------------------------------===//
// Slices, paddings, concatenations
//===----------------------------------------------------------------------===//

/// The slice's dimension that dimension \p dim of the whole is; nothing when
/// the slice has it not as a whole.
static std::optional<unsigned>
dimensionOfSlice(OffsetSizeAndStrideOpInterface op, RankedTensorType whole,
                 const llvm::SmallBitVector &dropped, unsigned dim) {
  if (!isZeroInteger(op.getMixedOffsets()[dim]) ||
      !isOneInteger(op.getMixedStrides()[dim]) || dropped.test(dim) ||
      getConstantIntValue(op.getMixedSizes()[dim]) != whole.getDimSize(dim))
    return std::nullopt;
  unsigned before = 0;
  for (unsigned other = 0; other < dim; ++other)
    before += dropped.test(other);
  return dim - before;
}

/// And back.
static unsigned dimensionOfWhole(const llvm::SmallBitVector &dropped,
                                 unsigned dim) {
  for (unsigned whole = 0;; ++whole)
    if (!dropped.test(whole) && dim-- == 0)
      return whole;
}

static constexpr const char *kCutsThrough =
    "it takes or writes only a part of the dimension";

static std::optional<OperationCut>
cutExtractSlice(tensor::ExtractSliceOp op, bool fromSource,
                CutPosition position, int64_t extent, std::string &why) {
  llvm::SmallBitVector dropped = op.getDroppedDims();
  unsigned whole =
      fromSource ? position.dim : dimensionOfWhole(dropped, position.dim);
  std::optional<unsigned> slice =
      dimensionOfSlice(op, op.getSourceType(), dropped, whole);
  if (!slice) {
    why = kCutsThrough;
    return std::nullopt;
  }
  OperationCut cut = parallelCut(op, extent);
  cut.operands[0] = {whole, position.outer, position.inner};
  cut.results[0] = {*slice, position.outer, position.inner};
  return cut;
}

static std::optional<OperationCut>
cutInsertSlice(tensor::InsertSliceOp op, bool fromSource, CutPosition position,
               int64_t extent, std::string &why) {
  llvm::SmallBitVector dropped = op.getDroppedDims();
  unsigned whole =
      fromSource ? dimensionOfWhole(dropped, position.dim) : position.dim;
  std::optional<unsigned> slice =
      dimensionOfSlice(op, op.getDestType(), dropped, whole);
  if (!slice) {
    why = kCutsThrough;
    return std::nullopt;
  }
  OperationCut cut = parallelCut(op, extent);
  cut.operands[0] = {*slice, position.outer, position.inner};
  cut.operands[1] = cut.results[0] = {whole, position.outer, position.inner};
  return cut;
}

static std::optional<OperationCut> cutPad(tensor::PadOp op,
                                          CutPosition position, int64_t extent,
                                          std::string &why) {
  bool readsPosition = llvm::any_of(op.getRegion().getArguments(),
                                    [](Value at) { return !at.use_empty(); });
  if (!isZeroInteger(op.getMixedLowPad()[position.dim]) ||
      !isZeroInteger(op.getMixedHighPad()[position.dim]) || readsPosition) {
    why = "it pads the dimension";
    return std::nullopt;
  }
  OperationCut cut = parallelCut(op, extent);
  cut.operands[0] = cut.results[0] = position;
  return cut;
}

static std::optional<OperationCut> cutConcat(tensor::ConcatOp op,
                                             CutPosition position,
                                             int64_t extent, std::string &why) {
  if (op.getDim() == position.dim) {
    why = "it joins tensors along the dimension";
    return std::nullopt;
  }
  OperationCut cut = parallelCut(op, extent);
  llvm::fill(cut.operands, position);
  cut.results[0] = position;
  return cut;
}

/// Operations on whole tensors, element by element.
static OperationCut cutElementwise(Operation *op, CutPosition position,
                                   int64_t extent) {
  OperationCut cut = parallelCut(op, extent);
  for (auto [operand, at] : llvm::zip(op->getOperands(), cut.operands))
    if (isa<RankedTensorType>(operand.getType()))
      at = position;
  llvm::fill(cut.results, position);
  return cut;
}

//===----------------------------------------------------------------------===//
// All operations
//===----------------------------------------------------------------------===//

/// False where a tensor has no static shape, or no elements.
static bool hasTensorsToCut(Operation *op) {
  auto canBeCut = [](Type type) {
    auto shaped = dyn_cast<ShapedType>(type);
    return !shaped || (isa<RankedTensorType>(type) && shaped.hasStaticShape() &&
                       shaped.getNumElements() > 0);
  };
  return llvm::all_of(op->getOperandTypes(), canBeCut) &&
         llvm::all_of(op->getResultTypes(), canBeCut);
}

/// \p operand: the one that is cut; nothing: the result.
static std::optional<OperationCut> cutMove(Operation *op,
                                           std::optional<unsigned> operand,
                                           CutPosition position, int64_t extent,
                                           std::string &why) {
  bool fromSource = operand == 0u;
  if (auto expand = dyn_cast<tensor::ExpandShapeOp>(op))
    return cutReshape(expand, fromSource, position, extent, why);
  if (auto collapse = dyn_cast<tensor::CollapseShapeOp>(op))
    return cutReshape(collapse, fromSource, position, extent, why);
  if (auto slice = dyn_cast<tensor::ExtractSliceOp>(op))
    return cutExtractSlice(slice, fromSource, position, extent, why);
  if (auto insert = dyn_cast<tensor::InsertSliceOp>(op))
    return cutInsertSlice(insert, fromSource, position, extent, why);
  if (auto pad = dyn_cast<tensor::PadOp>(op))
    return cutPad(pad, position, extent, why);
  if (auto concat = dyn_cast<tensor::ConcatOp>(op))
    return cutConcat(concat, position, extent, why);
  if (isa<tensor::EmptyOp, tensor::SplatOp>(op) ||
      (OpTrait::hasElementwiseMappableTraits(op) && op->getNumRegions() == 0))
    return cutElementwise(op, position, extent);
  why = "an operation of its kind is not cut";
  return std::nullopt;
}

std::optional<OperationCut> baechi::cutAlongUse(Operation *op, OpOperand &use,
                                                CutPosition position,
                                                int64_t extent,
                                                std::string &why) {
  if (!hasTensorsToCut(op)) {
    why = "its tensors have no static shape, or no elements";
    return std::nullopt;
  }
  if (auto loops = dyn_cast<linalg::LinalgOp>(op)) {
    std::optional<unsigned> loop =
        use.getOwner() == op ? loopOfOperand(loops, use, position.dim, why)
                             : loopOfCapture(loops, use.get(), position, why);
    if (!loop)
      return std::nullopt;
    return cutLoop(loops, *loop, position, extent, why);
  }
  if (use.getOwner() != op) {
    why = "it reads the tensor within a loop or a branch";
    return std::nullopt;
  }
  return cutMove(op, use.getOperandNumber(), position, extent, why);
}

std::optional<OperationCut> baechi::cutAlongResult(OpResult result,
                                                   CutPosition position,
                                                   int64_t extent,
                                                   std::string &why) {
  Operation *op = result.getOwner();
  if (!hasTensorsToCut(op)) {
    why = "its tensors have no static shape, or no elements";
    return std::nullopt;
  }
  if (auto loops = dyn_cast<linalg::LinalgOp>(op)) {
    std::optional<unsigned> loop =
        loopOfOperand(loops, *loops.getDpsInitOperand(result.getResultNumber()),
                      position.dim, why);
    if (!loop)
      return std::nullopt;
    return cutLoop(loops, *loop, position, extent, why);
  }
  return cutMove(op, std::nullopt, position, extent, why);
}

std::optional<OperationCut> baechi::cutAlongLoop(Operation *op, unsigned loop) {
  auto loops = dyn_cast<linalg::LinalgOp>(op);
  if (!loops || !hasTensorsToCut(op) || loop >= loops.getNumLoops())
    return std::nullopt;
  std::string why;
  return cutLoop(loops, loop, CutPosition(), loops.getStaticLoopRanges()[loop],
                 why);
}

SmallVector<int64_t> baechi::evenPieces(int64_t extent, int64_t pieces) {
  SmallVector<int64_t> sizes;
  for (int64_t piece = 0; piece < pieces; ++piece)
    sizes.push_back(extent / pieces + (piece < extent % pieces));
  return sizes;
}

//===- Seeds.cpp - Where cuts of an operation can start -------------------===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Seeds.h"
#include "Uniform.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

using namespace mlir;
using namespace baechi;
using namespace baechi::split;

/// The position of a loop's cut in a tensor that leads to the rest of a class,
/// and else in any.
static std::optional<Seed> seedOf(Operation *op, const OperationCut &cut,
                                  int64_t extent) {
  std::optional<Seed> seed;
  for (auto [operand, at] : llvm::zip(op->getOperands(), cut.operands)) {
    if (at && !isUniform(operand))
      return Seed{operand, *at, extent};
    if (at && !seed)
      seed = Seed{operand, *at, extent};
  }
  return seed;
}

SmallVector<Seed> split::seedsOf(Operation *op) {
  SmallVector<Seed> seeds;
  if (auto loops = dyn_cast<linalg::LinalgOp>(op)) {
    for (auto [loop, range] : llvm::enumerate(loops.getStaticLoopRanges()))
      if (std::optional<OperationCut> cut = cutAlongLoop(op, loop))
        if (std::optional<Seed> seed = seedOf(op, *cut, range))
          seeds.push_back(*seed);
    return seeds;
  }
  if (op->getNumResults() == 0 || isa<tensor::EmptyOp>(op) ||
      op->hasTrait<OpTrait::ConstantLike>())
    return seeds;
  auto type = dyn_cast<RankedTensorType>(op->getResult(0).getType());
  for (unsigned dim = 0, rank = type ? type.getRank() : 0; dim < rank; ++dim) {
    std::string why;
    CutPosition position{dim};
    int64_t extent = type.getDimSize(dim);
    if (!ShapedType::isDynamic(extent) &&
        cutAlongResult(op->getResult(0), position, extent, why))
      seeds.push_back({op->getResult(0), position, extent});
  }
  return seeds;
}

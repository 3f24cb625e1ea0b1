//===- JoinPartials.cpp - Partial results, joined -------------------------===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Baechi/Analysis/Program.h"
#include "Baechi/Dialect/Baechi.h"
#include "Pieces.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

using namespace mlir;
using namespace baechi;
using namespace baechi::split;

Value split::neutralTensor(OpBuilder &builder, Location loc, Type type,
                           Operation *combiner) {
  auto tensor = cast<RankedTensorType>(type);
  Value empty = tensor::EmptyOp::create(builder, loc, tensor.getShape(),
                                        tensor.getElementType());
  Value neutral = arith::ConstantOp::create(
      builder, loc, *arith::getNeutralElement(combiner));
  return linalg::FillOp::create(builder, loc, neutral, empty).result();
}

/// `a` joined with `b`, which comes behind.
static Value join(OpBuilder &builder, Location loc, Value a, Value b,
                  Operation *combiner) {
  auto type = cast<RankedTensorType>(a.getType());
  Value empty = tensor::EmptyOp::create(builder, loc, type.getShape(),
                                        type.getElementType());
  SmallVector<AffineMap> maps(3,
                              builder.getMultiDimIdentityMap(type.getRank()));
  SmallVector<utils::IteratorType> loops(type.getRank(),
                                         utils::IteratorType::parallel);
  auto joined = linalg::GenericOp::create(
      builder, loc, type, ValueRange{a, b}, empty, maps, loops,
      [&](OpBuilder &body, Location loc, ValueRange arguments) {
        Operation *join = body.clone(*combiner);
        join->setOperands(arguments.take_front(2));
        linalg::YieldOp::create(body, loc, join->getResults());
      });
  return joined.getResult(0);
}

Value split::joinInPairs(OpBuilder &builder, Location loc,
                         ArrayRef<Value> partials, Operation *combiner) {
  SmallVector<Value> left(partials);
  while (left.size() > 1) {
    SmallVector<Value> joined;
    for (size_t at = 0; at + 1 < left.size(); at += 2)
      joined.push_back(join(builder, loc, left[at], left[at + 1], combiner));
    for (Value pair : joined)
      pair.getDefiningOp()->setAttr(BaechiDialect::kPartials,
                                    builder.getUnitAttr());
    if (left.size() % 2)
      joined.push_back(left.back());
    left = std::move(joined);
  }
  return left.front();
}

SmallVector<Value> split::joinForEach(OpBuilder &builder, Location loc,
                                      StringRef name, ArrayRef<Value> partials,
                                      Operation *combiner) {
  size_t count = partials.size();
  auto placeOf = [&](size_t number) -> Location {
    if (name.empty())
      return loc;
    return NameLoc::get(
        builder.getStringAttr(name + ".sum.piece" + Twine(number)), loc);
  };
  SmallVector<Value> sums(partials);
  if (!llvm::isPowerOf2_64(count)) {
    for (auto [number, sum] : llvm::enumerate(sums))
      sum = joinInPairs(builder, placeOf(number), partials, combiner);
    return sums;
  }
  for (size_t bit = 1; bit < count; bit *= 2) {
    SmallVector<Value> before = sums;
    for (auto [number, sum] : llvm::enumerate(sums)) {
      sum = join(builder, placeOf(number), before[number & ~bit],
                 before[number | bit], combiner);
      sum.getDefiningOp()->setAttr(BaechiDialect::kPartials,
                                   builder.getUnitAttr());
    }
  }
  return sums;
}

Value split::joinInOrder(OpBuilder &builder, Location loc,
                         ArrayRef<Value> partials, Operation *combiner) {
  Value sum = partials.front();
  // The piece first: a product then starts from the sum, in its buffer.
  for (Value piece : partials.drop_front())
    sum = join(builder, loc, piece, sum, combiner);
  return sum;
}

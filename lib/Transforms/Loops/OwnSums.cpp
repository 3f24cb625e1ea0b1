//===- OwnSums.cpp - Sums of each block's own -*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "OwnSums.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

using namespace mlir;
using namespace baechi;

std::string baechi::operationOf(StringRef name, Type element) {
  return ("arith." + name + (isa<FloatType>(element) ? "f" : "i")).str();
}

std::string baechi::combinerOf(const loops::Loop &loop, size_t array,
                               Type element) {
  // All updates of an array are of one kind.
  auto access = llvm::find_if(loop.accesses, [&](const loops::Access &each) {
    return each.array == static_cast<int32_t>(array);
  });
  if (access->combiner.empty())
    return operationOf("add", element);
  return access->combiner == "product" ? operationOf("mul", element)
                                       : access->combiner;
}

static Operation *createCombiner(OpBuilder &builder, Location loc,
                                 StringRef name, Value a, Value b) {
  OperationState state(loc, name, ValueRange{a, b}, a.getType());
  return builder.create(state);
}

Value baechi::neutralOf(OpBuilder &builder, Location loc, RankedTensorType type,
                        StringRef combiner) {
  Value zero = arith::ConstantOp::create(
      builder, loc, builder.getZeroAttr(type.getElementType()));
  Operation *one = createCombiner(builder, loc, combiner, zero, zero);
  std::optional<TypedAttr> element = arith::getNeutralElement(one);
  one->erase();
  assert(element && "combiners have neutral elements");
  Value value = arith::ConstantOp::create(builder, loc, *element);
  Value empty = tensor::EmptyOp::create(builder, loc, type.getShape(),
                                        type.getElementType());
  return linalg::FillOp::create(builder, loc, value, empty).getResult(0);
}

Value baechi::combined(OpBuilder &builder, Location loc, Value a, Value b,
                       StringRef operation) {
  auto type = cast<RankedTensorType>(a.getType());
  AffineMap identity = builder.getMultiDimIdentityMap(type.getRank());
  SmallVector<utils::IteratorType> loops(type.getRank(),
                                         utils::IteratorType::parallel);
  Value empty = tensor::EmptyOp::create(builder, loc, type.getShape(),
                                        type.getElementType());
  return linalg::GenericOp::create(
             builder, loc, type, ValueRange{a, b}, empty,
             ArrayRef{identity, identity, identity}, loops,
             [&](OpBuilder &inner, Location at, ValueRange arguments) {
               Operation *made = createCombiner(inner, at, operation,
                                                arguments[0], arguments[1]);
               linalg::YieldOp::create(inner, at, made->getResult(0));
             })
      .getResult(0);
}

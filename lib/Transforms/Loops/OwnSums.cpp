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

/// The operation of arith that the updates of \p array, whose elements are of
/// type \p element, are.
static std::string combinerOf(const loops::Loop &loop, size_t array,
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

static Value filled(OpBuilder &builder, Location loc, RankedTensorType type,
                    TypedAttr element) {
  Value value = arith::ConstantOp::create(builder, loc, element);
  Value empty = tensor::EmptyOp::create(builder, loc, type.getShape(),
                                        type.getElementType());
  return linalg::FillOp::create(builder, loc, value, empty).getResult(0);
}

/// Element by element what \p join makes of two.
static Value
joined(OpBuilder &builder, Location loc, Value a, Value b,
       llvm::function_ref<Value(OpBuilder &, Location, Value, Value)> join) {
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
               linalg::YieldOp::create(
                   inner, at, join(inner, at, arguments[0], arguments[1]));
             })
      .getResult(0);
}

/// A tensor filled with what changes nothing that it is combined with.
static Value neutralOf(OpBuilder &builder, Location loc, RankedTensorType type,
                       StringRef combiner) {
  Value zero = arith::ConstantOp::create(
      builder, loc, builder.getZeroAttr(type.getElementType()));
  Operation *one = createCombiner(builder, loc, combiner, zero, zero);
  std::optional<TypedAttr> element = arith::getNeutralElement(one);
  one->erase();
  assert(element && "combiners have neutral elements");
  return filled(builder, loc, type, *element);
}

Value baechi::combined(OpBuilder &builder, Location loc, Value a, Value b,
                       StringRef operation) {
  return joined(
      builder, loc, a, b,
      [&](OpBuilder &inner, Location at, Value x, Value y) -> Value {
        return createCombiner(inner, at, operation, x, y)->getResult(0);
      });
}

/// Of two the second where it is \p number, bit by bit, else the first.
static Value withNumber(OpBuilder &builder, Location loc, Value a, Value b,
                        TypedAttr number) {
  Type element = number.getType();
  auto bits = [&](OpBuilder &inner, Location at, Value value) -> Value {
    if (!isa<FloatType>(element))
      return value;
    return arith::BitcastOp::create(
        inner, at, inner.getIntegerType(element.getIntOrFloatBitWidth()),
        value);
  };
  return joined(builder, loc, a, b,
                [&](OpBuilder &inner, Location at, Value x, Value y) -> Value {
                  Value set = arith::ConstantOp::create(inner, at, number);
                  Value isSet = arith::CmpIOp::create(
                      inner, at, arith::CmpIPredicate::eq, bits(inner, at, y),
                      bits(inner, at, set));
                  return arith::SelectOp::create(inner, at, isSet, y, x);
                });
}

Value baechi::ownStart(OpBuilder &builder, Location loc, const LoopModel &model,
                       size_t array, RankedTensorType type) {
  TypedAttr number = model.numbers.lookup(array);
  if (!number)
    return neutralOf(builder, loc, type,
                     combinerOf(model.loop, array, type.getElementType()));
  TypedAttr zero = builder.getZeroAttr(type.getElementType());
  bool isZero = zero == number;
  return filled(builder, loc, type,
                isZero ? builder.getOneAttr(type.getElementType()) : zero);
}

Value baechi::withOwn(OpBuilder &builder, Location loc, const LoopModel &model,
                      size_t array, Value total, Value own) {
  if (TypedAttr number = model.numbers.lookup(array))
    return withNumber(builder, loc, total, own, number);
  Type element = cast<RankedTensorType>(total.getType()).getElementType();
  return combined(builder, loc, total, own,
                  combinerOf(model.loop, array, element));
}

//===- RowWriter.cpp - Rows of tensors -*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "RowWriter.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

using namespace mlir;
using namespace baechi;

Place::Place(OpBuilder &builder, ArrayRef<int64_t> shape) {
  for (int64_t size : shape) {
    offsets.push_back(builder.getIndexAttr(0));
    sizes.push_back(builder.getIndexAttr(size));
    strides.push_back(builder.getIndexAttr(1));
  }
}

Value RowWriter::constant(int64_t of) {
  return arith::ConstantIndexOp::create(builder, loc, of);
}

Value RowWriter::empty(RankedTensorType type) {
  return tensor::EmptyOp::create(builder, loc, type.getShape(),
                                 type.getElementType());
}

Value RowWriter::rowsOf(Value tensor, unsigned dimension, Rows rows) {
  Place place(builder, cast<RankedTensorType>(tensor.getType()).getShape());
  place.offsets[dimension] = builder.getIndexAttr(rows.first);
  place.sizes[dimension] = builder.getIndexAttr(rows.second - rows.first);
  return tensor::ExtractSliceOp::create(builder, loc, tensor, place.offsets,
                                        place.sizes, place.strides);
}

Value RowWriter::putRows(Value rows, Value into, unsigned dimension,
                         int64_t at) {
  Place place(builder, cast<RankedTensorType>(rows.getType()).getShape());
  place.offsets[dimension] = builder.getIndexAttr(at);
  return tensor::InsertSliceOp::create(builder, loc, rows, into, place.offsets,
                                       place.sizes, place.strides);
}

Value RowWriter::copyOf(Value tensor, unsigned dimension, const Twine &name) {
  auto type = cast<RankedTensorType>(tensor.getType());
  // A loop of one turn is none: along another dimension, or its row twice.
  for (unsigned d = 0; d < type.getRank() && type.getDimSize(dimension) < 2;
       ++d)
    if (type.getDimSize(d) > 1)
      dimension = d;
  int64_t turns = std::max<int64_t>(2, type.getDimSize(dimension));
  auto loop = scf::ForOp::create(
      builder, NameLoc::get(builder.getStringAttr(name), loc), constant(0),
      constant(turns), constant(1), empty(type));
  OpBuilder::InsertionGuard guard(builder);
  builder.setInsertionPointToStart(loop.getBody());
  Place place(builder, type.getShape());
  place.sizes[dimension] = builder.getIndexAttr(1);
  if (type.getDimSize(dimension) > 1)
    place.offsets[dimension] = loop.getInductionVar();
  Value row = tensor::ExtractSliceOp::create(
      builder, loc, tensor, place.offsets, place.sizes, place.strides);
  Value put =
      tensor::InsertSliceOp::create(builder, loc, row, loop.getRegionIterArg(0),
                                    place.offsets, place.sizes, place.strides);
  scf::YieldOp::create(builder, loc, put);
  return loop.getResult(0);
}

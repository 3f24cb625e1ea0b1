//===- VectorCode.cpp - Building code on vectors -*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "VectorCode.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"

using namespace mlir;
using namespace baechi;

VectorCode::VectorCode(OpBuilder &builder, Location loc, int64_t lanes)
    : PointerCode(builder, loc), lanes(lanes),
      vector(VectorType::get({lanes}, builder.getF32Type())) {}

Value VectorCode::constant(float value) {
  return LLVM::ConstantOp::create(
      builder, loc, vector,
      DenseElementsAttr::get(vector, builder.getF32FloatAttr(value)));
}

Value VectorCode::mask(int64_t count) {
  SmallVector<bool> bits(lanes, false);
  std::fill_n(bits.begin(), count, true);
  auto type = VectorType::get({lanes}, builder.getI1Type());
  return LLVM::ConstantOp::create(builder, loc, type,
                                  DenseElementsAttr::get(type, bits));
}

Value VectorCode::load(Value pointer, Columns columns, int64_t index) {
  pointer = at(pointer, index * lanes);
  if (!columns.isPartial(index))
    return LLVM::LoadOp::create(builder, loc, vector, pointer,
                                /*alignment=*/4);
  return LLVM::MaskedLoadOp::create(builder, loc, vector, pointer,
                                    mask(columns.count % lanes), constant(0),
                                    /*alignment=*/4);
}

void VectorCode::store(Value value, Value pointer, Columns columns,
                       int64_t index) {
  pointer = at(pointer, index * lanes);
  if (columns.isPartial(index))
    LLVM::MaskedStoreOp::create(builder, loc, value, pointer,
                                mask(columns.count % lanes), /*alignment=*/4);
  else
    LLVM::StoreOp::create(builder, loc, value, pointer, /*alignment=*/4);
}

Value VectorCode::splat(Value scalar) {
  Value empty = LLVM::PoisonOp::create(builder, loc, vector);
  Value first =
      LLVM::InsertElementOp::create(builder, loc, empty, scalar, i32(0));
  return LLVM::ShuffleVectorOp::create(builder, loc, first, empty,
                                       SmallVector<int32_t>(lanes, 0));
}

/// Transposes a square of vectors by exchanging ever smaller blocks.
void VectorCode::transposeSquare(MutableArrayRef<Value> rows) {
  for (int64_t distance = lanes / 2; distance >= 1; distance /= 2) {
    SmallVector<int32_t> low, high;
    for (int32_t j = 0; j < lanes; ++j) {
      bool upper = j & distance;
      low.push_back(upper ? lanes + j - distance : j);
      high.push_back(upper ? lanes + j : j + distance);
    }
    for (int64_t i = 0; i < lanes; ++i) {
      if (i & distance)
        continue;
      Value one = rows[i], other = rows[i + distance];
      rows[i] = LLVM::ShuffleVectorOp::create(builder, loc, one, other, low);
      rows[i + distance] =
          LLVM::ShuffleVectorOp::create(builder, loc, one, other, high);
    }
  }
}

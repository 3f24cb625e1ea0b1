//===- StridedProduct.h - Kernels as sums of products -*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef BAECHI_LIB_CONVERSION_KERNELS_COMMON_STRIDEDPRODUCT_H
#define BAECHI_LIB_CONVERSION_KERNELS_COMMON_STRIDEDPRODUCT_H

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include <optional>
#include <utility>

namespace baechi {

/// A loop of a product: how far an iteration moves in each operand and in the
/// result, in elements.
struct ProductLoop {
  int64_t size = 1, a = 0, b = 0, c = 0;

  bool operator==(const ProductLoop &) const = default;
};
using ProductLoops = llvm::SmallVector<ProductLoop>;

/// Where A and B lie: in which arguments of the kernel, and where they start in
/// them.
struct ProductFactors {
  unsigned argumentA = 0, argumentB = 0;
  int64_t offsetA = 0, offsetB = 0;

  void transpose() {
    std::swap(argumentA, argumentB);
    std::swap(offsetA, offsetB);
  }
};

/// Where the operands and the start of the result lie.
struct ProductOperands {
  /// What the result starts from.
  enum class Start { Value, Argument };

  /// Those of each product that is added: alike but for where they lie.
  llvm::SmallVector<ProductFactors, 1> factors;

  Start start = Start::Value;
  float startValue = 0;
  unsigned startArgument = 0;
  int64_t startOffset = 0;

  bool startsFromZero() const {
    return start == Start::Value && startValue == 0;
  }
};

/// What the elements of products may be.
enum class ProductTypes {
  Single,
  /// Or bfloat16 or half precision, added up in that or in single precision.
  Short
};

/// A kernel that is C += A * B, or a sum of several such products, over any
/// number of loops.
struct StridedProduct {
  /// Of A and B, and of C.
  mlir::Type factorType, resultType;
  ProductOperands operands;
  /// Loops through A, B and C; A and C; B and C; A and B. All but `batch` have
  /// at least one loop, if need be of one iteration.
  ProductLoops batch, rows, columns, sums;
  /// Where the order of its sum is fixed and the sum is long: how far a block
  /// goes in each of the loops `sums` (Common/BlockSums.h).
  llvm::SmallVector<int64_t> block;
};

/// The product that `kernel` is, when it is one contraction of views of its
/// arguments, none of whose loops is empty, or several that each start from the
/// one before and move through their operands alike.
std::optional<StridedProduct>
matchStridedProduct(mlir::func::FuncOp kernel,
                    ProductTypes types = ProductTypes::Single);

/// The product that `op`, on buffers of static strides, adds to its result, as
/// a function of the pointers to the first elements of A, B and the result;
/// nothing for other operations and where a loop is empty.
std::optional<StridedProduct> matchBufferProduct(mlir::linalg::GenericOp op);

/// Merges loops that run through all operands as one.
void collapseLoops(ProductLoops &loops);

} // namespace baechi

#endif // BAECHI_LIB_CONVERSION_KERNELS_COMMON_STRIDEDPRODUCT_H

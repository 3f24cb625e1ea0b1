//===- PointerCode.h - Building code on pointers -*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef BAECHI_LIB_CONVERSION_KERNELS_COMMON_POINTERCODE_H
#define BAECHI_LIB_CONVERSION_KERNELS_COMMON_POINTERCODE_H

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/Builders.h"

namespace baechi {

/// Creates the private function on pointers that is `kernel`'s code: arguments,
/// result, scratch of so many bytes. The builder moves into its entry block.
mlir::func::FuncOp createPointerKernel(mlir::OpBuilder &builder,
                                       mlir::func::FuncOp kernel,
                                       int64_t scratchBytes);

/// Builds code on pointers to data of one type, single precision unless said
/// otherwise.
class PointerCode {
public:
  /// A loop counter and how many elements an iteration moves by.
  using Term = std::pair<mlir::Value, int64_t>;

  PointerCode(mlir::OpBuilder &builder, mlir::Location loc,
              mlir::Type element = {})
      : builder(builder), loc(loc),
        element(element ? element : builder.getF32Type()) {}

  mlir::Value index(int64_t value);
  mlir::Value i32(int64_t value);
  mlir::Value f32(float value);
  /// `offset` elements behind `pointer`.
  mlir::Value at(mlir::Value pointer, mlir::Value offset);
  mlir::Value at(mlir::Value pointer, int64_t offset);
  /// The sum of all iv * stride elements behind `pointer`.
  mlir::Value at(mlir::Value pointer, llvm::ArrayRef<Term> terms);
  /// Opens a loop over [0, size); what is built next goes into it.
  mlir::Value enterLoop(int64_t size);

  mlir::OpBuilder &builder;
  mlir::Location loc;
  mlir::Type element;
};

} // namespace baechi

#endif // BAECHI_LIB_CONVERSION_KERNELS_COMMON_POINTERCODE_H

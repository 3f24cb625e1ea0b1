//===- EmitGemm.h - Products by calls of a library --------------*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef BAECHI_LIB_CONVERSION_KERNELS_HOST_EMITGEMM_H
#define BAECHI_LIB_CONVERSION_KERNELS_HOST_EMITGEMM_H

#include "Common/Gemm.h"

namespace baechi {

/// Whose function multiplies: cblas_sgemm, or dnnl_sgemm of oneDNN.
enum class GemmInterface { Cblas, OneDnn };

/// Writes a function on pointers (arguments, result, scratch) named as `kernel`
/// that executes `plan` by calls of a library.
mlir::func::FuncOp emitGemm(mlir::OpBuilder &builder, mlir::func::FuncOp kernel,
                            const GemmPlan &plan, GemmInterface interface);

} // namespace baechi

#endif // BAECHI_LIB_CONVERSION_KERNELS_HOST_EMITGEMM_H

//===- LibraryCall.h - Calls of the runtime's libraries -*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef BAECHI_LIB_CONVERSION_KERNELS_CUDA_LIBRARYCALL_H
#define BAECHI_LIB_CONVERSION_KERNELS_CUDA_LIBRARYCALL_H

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "llvm/ADT/bit.h"

namespace baechi {

/// Of arguments and results.
constexpr int64_t kPointerAlignment = 64;

/// The number of a type of elements in Baechi/Runtime/CudaAbi.h.
int64_t cudaTypeOf(mlir::Type type);

/// A function of Baechi/Runtime/CudaAbi.h, of so many pointers and then 32-bit
/// numbers, declared where it is not yet.
mlir::LLVM::LLVMFuncOp declareLibraryCall(mlir::OpBuilder &builder,
                                          mlir::func::FuncOp user,
                                          llvm::StringRef name,
                                          unsigned pointers, unsigned numbers);

/// The address of a constant of the module, before `function` and named after
/// it.
mlir::Value constantWords(mlir::OpBuilder &builder, mlir::func::FuncOp function,
                          llvm::StringRef suffix,
                          llvm::ArrayRef<int64_t> words);

/// The same of a struct whose members all have 64 bits.
template <typename Struct>
mlir::Value constantWords(mlir::OpBuilder &builder, mlir::func::FuncOp function,
                          llvm::StringRef suffix, const Struct &description) {
  using Words = std::array<int64_t, sizeof(Struct) / sizeof(int64_t)>;
  auto words = llvm::bit_cast<Words>(description);
  return constantWords(builder, function, suffix,
                       llvm::ArrayRef<int64_t>(words));
}

/// Bytes of scratch in which a library's workspace of so many bytes begins at a
/// multiple of what libraries ask for.
int64_t scratchFor(int64_t workspace);

/// Where the workspace begins in the scratch.
mlir::Value alignWorkspace(mlir::OpBuilder &builder, mlir::Location loc,
                           mlir::Value scratch);

} // namespace baechi

#endif // BAECHI_LIB_CONVERSION_KERNELS_CUDA_LIBRARYCALL_H

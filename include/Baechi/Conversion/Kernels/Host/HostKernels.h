//===- HostKernels.h - Kernels to host code -*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef BAECHI_CONVERSION_KERNELS_HOST_HOSTKERNELS_H
#define BAECHI_CONVERSION_KERNELS_HOST_HOSTKERNELS_H

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/DialectRegistry.h"
#include "llvm/ADT/Twine.h"

namespace baechi {

/// Grows with every change of the code that kernels become: what was measured
/// of other versions is measured again.
constexpr int kHostCodeVersion = 12;

/// The symbol that `kernel` has in host code. Its dots keep it apart from what
/// C and the runtime name: a kernel may be called exp, and call libm's.
inline std::string hostSymbol(llvm::StringRef kernel) {
  return ("baechi.kernel." + kernel).str();
}

/// The one that every kernel has, but in exact steps.
inline constexpr llvm::StringLiteral kGenerated = "generated";

/// The implementations that host code can be made with for `kernel`, the
/// default first: "generated" (every kernel), "openblas" and "onednn"
/// (contractions in single precision, through cblas_sgemm and dnnl_sgemm).
llvm::SmallVector<llvm::StringRef>
hostImplementations(mlir::func::FuncOp kernel);

/// The implementation that `kernel` asks for, which it may not have, else its
/// default.
llvm::StringRef askedImplementation(mlir::func::FuncOp kernel);

/// Replaces every kernel of `module` by an `llvm.func`,
///
///     void hostSymbol(NAME)(ptr argument…, ptr result…, ptr scratch)
///
/// - The pointers are to contiguous row-major buffers, 64-byte aligned; an i1
///   takes one byte, a 0-d tensor is one element.
/// - A result overlaps no argument, except that the caller may pass one buffer
///   for a result and an argument that the result's `baechi.may_alias` names.
///   Results need not be initialised. Arguments are never written otherwise.
/// - scratch has `baechi.kernel_scratch` bytes (kept on the llvm.func), 64-byte
///   aligned. The code allocates nothing and makes no system call.
///
/// `baechi.implementation` on a kernel selects among its hostImplementations().
/// Other functions of the module are left alone, calls of kernels included:
/// who lowers them calls the llvm.funcs. On failure the error names the kernel.
/// (LoweredKernels does the same for who asks for a kernel more than once.)
mlir::LogicalResult lowerKernels(mlir::ModuleOp module);

/// The programs that have a part in compiling: it changes with any of them.
const std::string &describeCompiler();

/// What the code of `kernel` in the implementation that it asks for depends on,
/// beside the processor: its text, and the programs that lower it. What a store
/// of code finds it by.
std::string storedText(mlir::func::FuncOp kernel);

} // namespace baechi

#endif // BAECHI_CONVERSION_KERNELS_HOST_HOSTKERNELS_H

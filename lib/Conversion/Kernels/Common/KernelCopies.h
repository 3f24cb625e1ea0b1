//===- KernelCopies.h - Lowering copies of kernels -*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef BAECHI_LIB_CONVERSION_KERNELS_COMMON_KERNELCOPIES_H
#define BAECHI_LIB_CONVERSION_KERNELS_COMMON_KERNELCOPIES_H

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/OwningOpRef.h"

namespace baechi {

llvm::SmallVector<mlir::func::FuncOp> kernelsOf(mlir::ModuleOp module);

/// Fails when a kernel of `module` is called on tensors in it: a func.call of
/// an llvm.func would not verify. (Devices' modules declare the kernels that
/// they call.)
mlir::LogicalResult checkNotCalled(mlir::ModuleOp module);

/// Moves everything in `from` to the end of `to`.
void append(mlir::ModuleOp from, mlir::ModuleOp to);

/// A module of copies of `kernels`.
mlir::OwningOpRef<mlir::ModuleOp>
copiesOf(llvm::ArrayRef<mlir::func::FuncOp> kernels, mlir::Location location);

/// Runs `step`, which makes `target` ("host code"), on what `copy` makes of all
/// kernels at once. When it fails, finds out by which kernel and says so: the
/// step's own errors rarely name the function.
mlir::FailureOr<mlir::OwningOpRef<mlir::ModuleOp>>
runOnCopies(llvm::ArrayRef<mlir::func::FuncOp> kernels, mlir::Location location,
            llvm::StringRef target,
            llvm::function_ref<mlir::LogicalResult(mlir::ModuleOp)> step,
            llvm::function_ref<mlir::OwningOpRef<mlir::ModuleOp>(
                llvm::ArrayRef<mlir::func::FuncOp>, mlir::Location)>
                copy = copiesOf);

/// The same for a few kernels after the other, on the context's threads; a
/// module for each few. \p step loads no dialects beyond those of its passes.
mlir::FailureOr<llvm::SmallVector<mlir::OwningOpRef<mlir::ModuleOp>>>
runOnGroups(llvm::ArrayRef<mlir::func::FuncOp> kernels, mlir::Location location,
            llvm::StringRef target,
            llvm::function_ref<mlir::LogicalResult(mlir::ModuleOp)> step,
            llvm::function_ref<mlir::OwningOpRef<mlir::ModuleOp>(
                llvm::ArrayRef<mlir::func::FuncOp>, mlir::Location)>
                copy = copiesOf);

/// Memory was planned with the scratch that the kernel says, which `pass` has
/// written: fails when more is needed.
mlir::LogicalResult checkPlannedScratch(mlir::func::FuncOp kernel,
                                        int64_t needed, llvm::StringRef pass);

/// Moves the symbols of `from` to the end of `to`. Functions keep their names;
/// constants, which only they use, are renamed where `to` has the name already.
mlir::LogicalResult moveSymbols(mlir::ModuleOp from, mlir::ModuleOp to,
                                llvm::StringRef target);

} // namespace baechi

#endif // BAECHI_LIB_CONVERSION_KERNELS_COMMON_KERNELCOPIES_H

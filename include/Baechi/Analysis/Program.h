//===- Program.h - A step as operators and tensors -*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef BAECHI_ANALYSIS_PROGRAM_H
#define BAECHI_ANALYSIS_PROGRAM_H

#include "Baechi/Dialect/Baechi.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Interfaces/FunctionInterfaces.h"

namespace baechi {

/// Every buffer of an arena starts at a multiple of this, and the placement
/// problem charges tensors by it.
constexpr int64_t kAlignment = 64;

/// The one public function with a body that is no kernel; emits an error that
/// names the candidates when there is not exactly one.
mlir::FailureOr<mlir::FunctionOpInterface> findStep(mlir::ModuleOp module);

/// Makes the public function \p name the step: all others with a body become
/// private. Emits an error that names the candidates when it is none of them.
mlir::LogicalResult chooseStep(mlir::ModuleOp module, llvm::StringRef name);

/// Emits an error when the module holds programs of devices already.
mlir::LogicalResult checkNotPartitioned(mlir::ModuleOp module);

/// The same for what works on func.func alone: an error for other functions.
mlir::FailureOr<mlir::func::FuncOp> findFuncStep(mlir::ModuleOp module);

/// An error on the first operation whose meaning MLIR's own folds and patterns
/// would lose: one that writes a part of its init, or pads by less than
/// nothing. For passes that simplify programs as they came.
mlir::LogicalResult checkNotLostByFolds(mlir::ModuleOp module);

/// The certificate of the module's placed step; null where none is placed.
PlacementCertificateAttr findCertificate(mlir::ModuleOp module);

/// True for operations that only give a tensor another type (reshapes, and what
/// says so by BufferOpInterface): their result is the operand's buffer. A slice
/// in one piece (`sliceOffset`) that carries `baechi.view` is a part of it.
bool isView(mlir::Operation *op);

/// Takes an attribute off an operation, also where it stands among an
/// unregistered one's properties (Operation::removeAttr leaves a null there).
void removeAttribute(mlir::Operation *op, llvm::StringRef name);

/// The value whose buffer \p value is, seen through views.
mlir::Value rootOf(mlir::Value value);

/// The bytes from the start of rootOf(\p value)'s buffer to \p value.
int64_t offsetInRoot(mlir::Value value);

/// Bytes of a tensor or vector of static shape, or of a scalar (i1 is one
/// byte), rounded up to kAlignment when \p aligned. Nullopt for any other type,
/// and beyond 2^48 bytes, so that sums do not overflow.
std::optional<int64_t> tensorBytes(mlir::Type type, bool aligned);

/// Emits an error for the first argument or operator's result whose size is not
/// known, and for messages: what has these was partitioned already.
llvm::LogicalResult checkPlaceable(mlir::FunctionOpInterface step);

/// The operators of a step in program order: every operation but constants,
/// views, messages and the terminator.
llvm::SmallVector<mlir::Operation *>
operatorsOf(mlir::FunctionOpInterface step);

/// Whether the step ends after \p await, but for other awaits, and what is
/// awaited is that a loan is given back: nothing overwrites the tensor within
/// the step, and the step ends when all devices have ended, so nobody has to
/// wait.
bool isAtEndForLoan(AwaitOp await);

/// The values that an operator of a step reads: its operands, and what its
/// regions use of the step.
llvm::SmallVector<mlir::Value> valuesReadBy(mlir::Operation *op);

/// The operators of a step with effects that others may see, in program order,
/// which they must keep: what reads or writes memory, or may do so as far as is
/// known (docs/architecture.md). Unknown operations with results are pure.
llvm::SmallVector<mlir::Operation *>
operatorsWithEffects(mlir::FunctionOpInterface step);

/// A unique name for every argument and operator of a step, from `baechi.name`
/// or locations: arguments first, then operatorsOf.
llvm::SmallVector<std::string> namesOf(mlir::FunctionOpInterface step);

/// The name of one operation: its `baechi.name`, else the first NameLoc's of
/// its location, "" if there is neither.
std::string nameOf(mlir::Operation *op);

/// The kernel that a call names, looked up from \p op's symbol table outwards;
/// null when it is no call of a kernel. Looking up the kernels of many
/// operators takes \p symbols, which remembers the tables.
mlir::func::FuncOp kernelOf(mlir::Operation *op);
mlir::func::FuncOp kernelOf(mlir::Operation *op,
                            mlir::SymbolTableCollection &symbols);

/// Whether a kernel has no code: a host device asks its host program for what
/// it computes (docs/host-calls.md).
bool isHostCall(mlir::func::FuncOp kernel);

} // namespace baechi

#endif // BAECHI_ANALYSIS_PROGRAM_H

//===- Phases.h - The phases of baechi-form-kernels -*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef BAECHI_LIB_TRANSFORMS_FORMKERNELS_PHASES_H
#define BAECHI_LIB_TRANSFORMS_FORMKERNELS_PHASES_H

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/IR/BuiltinOps.h"

namespace baechi::formkernels {

/// What forming kernels made of a program: the pass's remark.
struct KernelCounts {
  /// Operators of the program as it came, and calls of kernels afterwards.
  int64_t operatorsBefore = 0;
  int64_t operatorsAfter = 0;
  /// Distinct kernels.
  int64_t kernels = 0;
  /// Bytes that the operators read and write, as costs count them (`workOf`).
  int64_t bytesBefore = 0;
  int64_t bytesAfter = 0;
};

/// The module's step: its only public function, which must be a straight line
/// of operations on tensors. Errors name what is in the way.
mlir::FailureOr<mlir::func::FuncOp> findStep(mlir::ModuleOp module);

/// Errors on attributes of the baechi dialect, which kernels do not keep.
mlir::LogicalResult checkAsWritten(mlir::func::FuncOp step);

/// Errors on constants whose resource is not there or has another size; those
/// of booleans get their values.
mlir::LogicalResult settleResources(mlir::func::FuncOp step);

/// Positions that are computed by affine maps (affine.apply, min and max, as
/// upstream's fusion and tiling leave them) as plain arithmetic.
mlir::LogicalResult computeIndexMaps(mlir::func::FuncOp step);

/// Errors on what cannot become a kernel: dynamic shapes, element types without
/// code, operations of unknown dialects, scalars that loops leave behind. Run
/// after canonicalization, which removes some of these.
mlir::LogicalResult checkOperations(mlir::func::FuncOp step);

/// What --canonicalize does to the step, in half of its time: its control flow
/// is left alone and nothing is verified in between.
void simplify(mlir::func::FuncOp step);

/// Drops dimensions and loops of extent 1 from structured operations, and
/// simplifies.
void foldUnitDimensions(mlir::func::FuncOp step);

/// Pads, slices and concatenations of tensors without elements as what they
/// give: lowering them would make slices that begin outside of a tensor.
void dropEmptyParts(mlir::func::FuncOp step);

/// Cuts off what no window of a structured operation reads of its operands.
/// Run before loops of extent 1 are dropped.
void cutOperandsToWindows(mlir::func::FuncOp step);

/// Every structured operation but linalg.fill as linalg.generic; elementwise
/// arithmetic and concatenations of tensors as structured operations.
void generalize(mlir::func::FuncOp step);

/// Reductions that sum or multiply halves do so in single precision, and round
/// once.
void widenSums(mlir::func::FuncOp step);

/// Lets contractions write transposed results and start from an addend; makes
/// those with a tensor of one number sums that are computed once.
void foldIntoContractions(mlir::func::FuncOp step);

/// Fuses elementwise operations into their consumers where that saves memory
/// traffic, recomputing cheap ones. `maxBuffers`: the most tensors that the
/// fused operation may read and write, 0 for any number.
void fuseElementwise(mlir::func::FuncOp step, unsigned maxBuffers);

/// Remarks (baechi-form-kernels) for each operation that stayed apart from a
/// reader of its result, with the reason.
void remarkNotFused(mlir::func::FuncOp step, unsigned maxBuffers);

/// Reductions over columns run along their largest input's rows.
void reorderReductions(mlir::func::FuncOp step);

/// Copies what the step returns without computing it: arguments, constants,
/// slices, and values that it returns twice.
void copyPlainResults(mlir::func::FuncOp step);

/// Copies what host calls read of values that kernels would compute for
/// themselves: small constants, fills and slices with gaps.
void copyHostOperands(mlir::func::FuncOp step);

/// Groups the operations of `step`, outlines each group as a kernel and
/// replaces the step's body by calls. Groups over rows become loops over them
/// if `rowLoops`. `maxBuffers` bounds what grouping makes, as in
/// fuseElementwise.
void outlineKernels(mlir::func::FuncOp step, bool rowLoops, unsigned maxBuffers,
                    KernelCounts &counts);

/// Operations that compute, as opposed to views, fills and scalars; and the
/// bytes that they read and write.
void countOperators(mlir::func::FuncOp step, int64_t &operators,
                    int64_t &bytes);

/// Bytes of a tensor of static shape as it lies in memory: i1 takes a byte.
int64_t tensorBytes(mlir::Type type);

} // namespace baechi::formkernels

#endif // BAECHI_LIB_TRANSFORMS_FORMKERNELS_PHASES_H

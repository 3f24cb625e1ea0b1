//===- Collectives.h - StableHLO's collectives, of all replicas -*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef BAECHI_LIB_TRANSFORMS_SPLIT_COLLECTIVES_H
#define BAECHI_LIB_TRANSFORMS_SPLIT_COLLECTIVES_H

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/Builders.h"

namespace baechi::split {

/// What each replica gets of result \p number of \p op, a collective, where the
/// replicas have \p operands in place of its operand of that number; emits an
/// error where \p op is none that is known, or of another form.
///
/// Sums are of pairs of neighbours, in the order of the replica groups.
mlir::FailureOr<llvm::SmallVector<mlir::Value>>
exchange(mlir::OpBuilder &builder, mlir::Operation *op, unsigned number,
         llvm::ArrayRef<mlir::Value> operands);

/// Whether \p around is of StableHLO, or has such an operation in it.
bool hasStableHlo(mlir::Operation *around);

/// Writes loops of \p step in which replicas exchange values turn by turn;
/// emits an error where their turns are not known or too many.
mlir::LogicalResult writeTurnByTurn(mlir::func::FuncOp step, int64_t replicas);

/// How many replicas the groups of \p op name; 0 where it has none.
int64_t replicasNamedBy(mlir::Operation *op);

/// \p parts one after the other along dimension \p dim.
mlir::Value concatenate(mlir::OpBuilder &builder, mlir::Location loc,
                        llvm::ArrayRef<mlir::Value> parts, unsigned dim);

/// Part \p number of \p count equal ones of \p whole along dimension \p dim.
mlir::Value partOf(mlir::OpBuilder &builder, mlir::Location loc,
                   mlir::Value whole, unsigned dim, int64_t number,
                   int64_t count);

} // namespace baechi::split

#endif // BAECHI_LIB_TRANSFORMS_SPLIT_COLLECTIVES_H

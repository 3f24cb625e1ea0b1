//===- Mapping.h - Kernels on buffers to launches -*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef BAECHI_LIB_CONVERSION_KERNELS_CUDA_MAPPING_H
#define BAECHI_LIB_CONVERSION_KERNELS_CUDA_MAPPING_H

#include "LinalgCode.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

namespace baechi {

/// Threads of a block where nothing asks for others.
constexpr int64_t kBlockThreads = 256;

/// The buffer that `view` is a view of, or `view` itself.
mlir::Value rootBuffer(mlir::Value view);

/// Brings bufferized kernels into the form that mapping takes: all work is
/// linalg.generic, and what sums start from is known.
mlir::LogicalResult normalize(mlir::func::FuncOp kernel, StartValues &starts);

/// Whether the iterations of `loop` touch nothing that another one writes.
bool isParallel(mlir::scf::ForOp loop);

/// The columns of all rows that a loop changes, when its iterations leave each
/// to itself.
struct IndependentColumns {
  int64_t columns = 0;
  /// What an iteration changes, if that is one row of buffers, of which it
  /// touches no other: then rows are shared out to so many owners.
  mlir::Value row;
  int64_t owners = 1;
};

/// Nothing when a block would do more side by side.
std::optional<IndependentColumns> independentColumns(mlir::scf::ForOp loop);

/// Writes a launch that executes `loop`, which has such columns.
void launchColumns(mlir::OpBuilder &builder, mlir::scf::ForOp loop,
                   const IndependentColumns &columns, mlir::func::FuncOp kernel,
                   Executor executor);

/// Replaces the work of a bufferized kernel by launches.
mlir::LogicalResult mapKernel(mlir::func::FuncOp kernel, Executor executor);

/// Writes launches that execute `op`, at `builder`'s position.
void launchElementwise(mlir::OpBuilder &builder, mlir::linalg::GenericOp op,
                       Executor executor);
/// The same in one launch for operations without sums that do not need each
/// other.
void launchTogether(mlir::OpBuilder &builder,
                    llvm::ArrayRef<mlir::linalg::GenericOp> ops,
                    Executor executor);

/// How many of `work`, from the first on, copy something into parts of one
/// buffer that are apart: 0 where that is not shown, 1 for a copy alone.
size_t countJoinedCopies(llvm::ArrayRef<mlir::Operation *> work);
/// The same of operations without sums, in a kernel whose operations need
/// nothing of each other (`baechi.cuda_together`).
size_t countTogether(llvm::ArrayRef<mlir::Operation *> work);
/// The same through tiles in shared memory, for an operation without sums that
/// reads a large operand across its rows; false where that is of no use.
bool launchTransposed(mlir::OpBuilder &builder, mlir::linalg::GenericOp op,
                      Executor executor);
void launchSums(mlir::OpBuilder &builder, mlir::linalg::GenericOp op,
                const StartValues &starts, Executor executor);

} // namespace baechi

#endif // BAECHI_LIB_CONVERSION_KERNELS_CUDA_MAPPING_H

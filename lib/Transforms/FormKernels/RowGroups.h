//===- RowGroups.h - Operations on the same rows as a kernel -*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef BAECHI_LIB_TRANSFORMS_FORMKERNELS_ROWGROUPS_H
#define BAECHI_LIB_TRANSFORMS_FORMKERNELS_ROWGROUPS_H

#include "OperatorGroups.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace baechi::formkernels {

/// The extents of the leading parallel loops that all members of a group run
/// over, by group. Missing for groups that cannot be computed row by row.
using RowExtents =
    llvm::DenseMap<OperatorGroups::Group, llvm::SmallVector<int64_t>>;

/// Merges operations that can be computed row by row: each reads of the others
/// only what they computed for the same row. Softmax and layer normalisation,
/// with what is elementwise around them, become one group. First along edges,
/// then among readers of one tensor.
RowExtents groupByRows(OperatorGroups &groups);

/// Merges elementwise operations into the group of the reduction that they
/// follow where they have much less to do: a mean's division, the update of a
/// bias. A launch of their own would cost more than they. Such groups have no
/// rows and are computed one operation after the other.
void groupTails(OperatorGroups &groups, RowExtents &rows);

/// Rewrites the body of `kernel`, a group of several linalg.generic, as a loop
/// nest over `rows` that computes one row of each at a time. Elementwise
/// operations over the same elements become one linalg.generic instead. Without
/// `loops` only the latter.
void fuseRows(mlir::func::FuncOp kernel, llvm::ArrayRef<int64_t> rows,
              bool loops);

} // namespace baechi::formkernels

#endif // BAECHI_LIB_TRANSFORMS_FORMKERNELS_ROWGROUPS_H

//===- PartPlaces.h - Which tensors are written into wholes -----*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef BAECHI_LIB_TRANSFORMS_PLANMEMORY_PARTPLACES_H
#define BAECHI_LIB_TRANSFORMS_PLANMEMORY_PARTPLACES_H

#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace baechi {

/// A place within another tensor's buffer.
struct PartPlace {
  mlir::Value whole;  ///< what the buffer is of, no part itself
  int64_t offset = 0; ///< bytes from its start
};

/// Roots of a device's step that can be made in their places within a tensor
/// that is put together of them: results of operators and tensors that are
/// received, no arguments, no constants, nothing that is lent. One that is a
/// part of several is made within the last. \p joined: which operators' results
/// are put together so. \p inArgument: roots that lie in arguments.
llvm::DenseMap<mlir::Value, PartPlace> findPartPlaces(
    mlir::func::FuncOp step,
    const llvm::SmallPtrSetImpl<mlir::Operation *> &joined,
    const llvm::DenseMap<mlir::Value, mlir::BlockArgument> &inArgument);

} // namespace baechi

#endif // BAECHI_LIB_TRANSFORMS_PLANMEMORY_PARTPLACES_H

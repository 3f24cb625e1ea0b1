//===- ReplicaSides.h - Which replica an operation is of --------*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef BAECHI_ANALYSIS_REPLICASIDES_H
#define BAECHI_ANALYSIS_REPLICASIDES_H

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "llvm/ADT/DenseMap.h"

namespace baechi {

/// Of a step that --baechi-replicate has cut: which replica each operation
/// computes for, known by the parts of the batch that it reads, at whatever
/// distance: of a mesh's replicas the one that has all of them. What joins
/// several replicas' values, and all that follows it, is nobody's and not in
/// the map, nor is what reads none, unless one replica alone reads it. Empty
/// for other steps.
///
/// Only where operations are placed depends on it, not what they compute.
llvm::DenseMap<mlir::Operation *, int64_t>
replicaSides(mlir::func::FuncOp step);

} // namespace baechi

#endif // BAECHI_ANALYSIS_REPLICASIDES_H

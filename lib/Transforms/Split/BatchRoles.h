//===- BatchRoles.h - What of a step is of a part of the batch --*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef BAECHI_LIB_TRANSFORMS_SPLIT_BATCHROLES_H
#define BAECHI_LIB_TRANSFORMS_SPLIT_BATCHROLES_H

#include "Baechi/Analysis/PlacementProblem.h"
#include "SplitPlan.h"

namespace baechi::split {

enum class Role {
  Free,   ///< takes neither time nor memory: what operations write into
  Shared, ///< depends on no part of the batch
  OfPart, ///< does a part's share
  OfAll   ///< reads what all parts make
};

/// A step whose batch is cut, or is to be, by operators of its graph.
struct BatchRoles {
  StepGraph whole;
  SplitPlan plan;
  /// Equal parts of the batch; 1 where something stands against more.
  int64_t parts = 1;
  int64_t extent = 0;
  llvm::SmallVector<Role> roles;
  /// Of what is `OfAll`: the first of those that are one operator.
  llvm::SmallVector<int32_t> joined;

  /// Where output \p output of \p id is cut; nothing where it is a summand or
  /// not of a part.
  std::optional<CutPosition> positionOf(int32_t id, int32_t output) const;
  mlir::Value valueOf(int32_t id, int32_t output) const;
  /// How an operator of a part is cut; null for arguments.
  const OperationCut *cutOf(int32_t id) const;
  mlir::Location locOf(int32_t id) const;
  /// Whether all that the operator of a part reads of \p edge is cut as the
  /// value is.
  bool readsOwn(const placement::Edge &edge) const;
};

/// Chooses the batch of \p step, as for replicas, and sorts operators. What
/// allows no parts gets a remark, and leaves one. Emits an error for a step
/// without costs, and, for several parts, without a batch that divides.
mlir::FailureOr<BatchRoles> findBatchRoles(mlir::func::FuncOp step,
                                           int64_t parts);

} // namespace baechi::split

#endif // BAECHI_LIB_TRANSFORMS_SPLIT_BATCHROLES_H

//===- ChooseBatch.h - The batch that replicas share out --------*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef BAECHI_LIB_TRANSFORMS_SPLIT_CHOOSEBATCH_H
#define BAECHI_LIB_TRANSFORMS_SPLIT_CHOOSEBATCH_H

#include "Estimate.h"
#include "SplitPlan.h"

namespace baechi::split {

/// Why the batch is cut, where it was asked for.
inline constexpr llvm::StringLiteral kIsTheBatch = "it is the batch";

/// Of the classes through arguments that do not come back as results the one
/// that the most work is along: the batch. Then others of its extent that save
/// \p leastNs. Replicas are asked for whether they save time or not. Where
/// there is none, arguments may come back in a class along another's first
/// dimension (a state of the batch), and then those that are only like a result
/// in type.
std::optional<Cut> chooseBatch(const SplitPlan &plan, mlir::func::FuncOp step,
                               const Estimate &estimate,
                               const PlanOptions &options, double leastNs);

/// Whether \p cut goes through parameters, or other arguments that come back,
/// and is no batch that has a state.
bool isOfState(mlir::func::FuncOp step, const Cut &cut);

/// A loop of the step that reads an argument whose next value is not returned:
/// what is computed in it is in no pieces.
struct LoopOverInput {
  mlir::Operation *loop;
  mlir::BlockArgument input;
};
std::optional<LoopOverInput> findLoopOverInput(mlir::func::FuncOp step);
void noteLoop(mlir::InFlightDiagnostic &diag, mlir::func::FuncOp step,
              const LoopOverInput &found);

/// Why there are no replicas: what is cut best does not divide, or nothing is.
llvm::LogicalResult refuseReplicas(mlir::func::FuncOp step,
                                   const Estimate &estimate,
                                   PlanOptions options);

} // namespace baechi::split

#endif // BAECHI_LIB_TRANSFORMS_SPLIT_CHOOSEBATCH_H

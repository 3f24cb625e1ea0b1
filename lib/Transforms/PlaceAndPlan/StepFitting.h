//===- StepFitting.h - Rewrites that fit the memories -----------*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===-------------------------------------------------------------------*- C++
//-*-===//

#ifndef BAECHI_LIB_TRANSFORMS_PLACEANDPLAN_STEPFITTING_H
#define BAECHI_LIB_TRANSFORMS_PLACEANDPLAN_STEPFITTING_H

#include "StepPlanner.h"
#include "Transforms/FitMemory/FitRemarks.h"
#include "mlir/IR/OwningOpRef.h"

namespace baechi {

class MemoryFitter;
class SpillFitter;
struct FitProposal;
struct UnfitPlans;
namespace placement {
struct SpillPlan;
} // namespace placement

/// Makes a step fit that has no plan as it is: values are computed again, or
/// tensors wait in a pool.
class StepFitting {
public:
  StepFitting(StepPlanner &planner, PlaceAndPlanReport &found)
      : planner(planner), found(found) {}

  /// The rewrite of \p untouched with the shortest step that has a plan which
  /// fits, in whose place it comes; else \p said, why there is no plan, says
  /// what would help.
  llvm::LogicalResult fit(mlir::OwningOpRef<mlir::ModuleOp> &untouched,
                          StepPlanner::Said &said);

  /// Tensors wait in a pool.
  bool isSpilled() const { return spillFit.has_value(); }

private:
  llvm::LogicalResult recompute(mlir::OwningOpRef<mlir::ModuleOp> &untouched,
                                StepPlanner::Said &said);
  llvm::LogicalResult planAlone(const MemoryFitter &fitter,
                                const FitProposal &proposal,
                                StepPlanner::Said &said,
                                std::optional<int64_t> &arenaBytes);
  const FitProposal *planInItsOrder(const MemoryFitter &fitter,
                                    llvm::ArrayRef<FitProposal> proposals,
                                    StepPlanner::Said &said,
                                    std::optional<int64_t> &leanest);
  std::optional<int64_t> needOfLeanest(const MemoryFitter &fitter);
  void waitInPool(int32_t pool, mlir::ModuleOp original,
                  std::optional<int64_t> &stepNs, StepPlanner::Said &said);
  llvm::LogicalResult spill(const SpillFitter &fitter,
                            std::optional<int64_t> otherwiseNs,
                            UnfitPlans &unfit, StepPlanner::Said &said);
  /// Values of \p original are computed again for a memory, and of what that
  /// holds the rest waits in the pool, where that takes less than \p stepNs,
  /// which it then is.
  void recomputeAndWait(int32_t pool, mlir::ModuleOp original,
                        std::optional<int64_t> &stepNs,
                        StepPlanner::Said &said);
  void useSpill(const SpillFitter &fitter, const placement::SpillPlan &proposal,
                StepPlanner::Said &spillSaid, StepPlanner::Said &said);
  void spread(const SpillFitter &fitter, std::optional<int64_t> &stepNs,
              StepPlanner::Said &said);

  // What is told of, each in many parts.
  static constexpr llvm::StringLiteral kSeekingAgain =
                                           "looking for what to compute again",
                                       kSeekingStays =
                                           "looking for what can wait";

  StepPlanner &planner;
  PlaceAndPlanReport &found;
  std::optional<SpillFit> spillFit; ///< where tensors wait in a pool
};

} // namespace baechi

#endif // BAECHI_LIB_TRANSFORMS_PLACEANDPLAN_STEPFITTING_H

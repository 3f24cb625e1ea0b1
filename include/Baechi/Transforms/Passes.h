//===- Passes.h - Passes on programs of operators -*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef BAECHI_TRANSFORMS_PASSES_H
#define BAECHI_TRANSFORMS_PASSES_H

#include "Baechi/Dialect/Baechi.h"
#include "Baechi/Placement/Model/Problem.h"
#include "Baechi/Transforms/MemoryFit.h"
#include "mlir/Pass/Pass.h"
#include <functional>

namespace baechi {

struct Profile;
struct SplitReport;
struct SumOrders;

/// What memory planning found for one device.
struct ArenaReport {
  std::string device;
  int64_t bytes = 0;    ///< the arena
  int64_t live = 0;     ///< a lower bound of it: most bytes live at once
  int64_t promised = 0; ///< by the placement; 0: it says nothing
  int64_t limit = 0;    ///< the device's memory
  llvm::StringRef by;   ///< the packing that was best
};

/// A placement that was given up: by the runtime's rules, under which copies
/// take the devices' time, one device alone is faster.
struct GivenUp {
  std::string winner;
  int64_t stepNs = 0;
};

/// How --baechi-place-and-plan came to its plan.
struct PlaceAndPlanReport {
  int attempts = 0;
  double placeSeconds = 0; ///< of the last placement
  /// What one device takes the place of.
  std::optional<GivenUp> givenUp;
  /// Where the step as it is fits no plan.
  std::optional<MemoryFit> memoryFit;
};

#define GEN_PASS_DECL
#include "Baechi/Transforms/Passes.h.inc"

#define GEN_PASS_REGISTRATION
#include "Baechi/Transforms/Passes.h.inc"

/// --baechi-annotate-costs=replace=true with a profile in memory; null: the
/// roofline.
std::unique_ptr<mlir::Pass> createAnnotateCosts(const Profile *profile);

/// --baechi-split that also fills in \p report, unless it is null, and gives
/// the step's sums numbers before, if it is to (Analysis/SumOrders.h).
std::unique_ptr<mlir::Pass> createSplit(const SplitOptions &options,
                                        SplitReport *report,
                                        bool numbersSums = false);

/// --baechi-form-kernels that also fills in \p sums, how those with numbers
/// are added up, unless it is null.
std::unique_ptr<mlir::Pass> createFormKernels(SumOrders *sums);

/// --baechi-plan-memory that also fills in \p arenas, one a device, whether
/// they are within the limits or not.
std::unique_ptr<mlir::Pass> createPlanMemory(std::vector<ArenaReport> *arenas);

/// --baechi-place whose search ends with an error once \p stopped, asked often
/// from the pass's thread, says true.
std::unique_ptr<mlir::Pass> createPlace(const PlaceOptions &options,
                                        std::function<bool()> stopped);

/// What is wrong with \p placer for --baechi-place, which has no
/// partitioner; empty if nothing is.
std::string wrongPlacer(llvm::StringRef placer);

/// What is wrong with the \p objective of --baechi-place, or with it for the
/// devices of \p machine: steps of host devices alone overlap. Empty if nothing
/// is.
std::string wrongObjective(llvm::StringRef objective,
                           const placement::Machine *machine = nullptr);

/// What follows placement: partition and memory plan, each verified. The
/// devices \p copiedFrom lend nothing.
void addPlanPasses(mlir::OpPassManager &manager,
                   std::vector<ArenaReport> *arenas = nullptr,
                   llvm::ArrayRef<std::string> copiedFrom = {});

} // namespace baechi

#endif // BAECHI_TRANSFORMS_PASSES_H

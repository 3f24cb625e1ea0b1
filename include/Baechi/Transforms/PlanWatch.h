//===- PlanWatch.h - Who watches a plan being made --------------*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef BAECHI_TRANSFORMS_PLANWATCH_H
#define BAECHI_TRANSFORMS_PLANWATCH_H

#include "Baechi/Transforms/Passes.h"

namespace baechi {

/// Both are called on the pass's thread; either may be missing.
struct PlanWatch {
  /// Asked often; once it says true, what runs ends soon with an error.
  std::function<bool()> stopped = {};
  /// \p done of \p total parts of \p what, a literal.
  std::function<void(llvm::StringRef what, size_t done, size_t total)>
      progress = {};
  /// Whether someone reads why there is no plan: what would help is looked for.
  bool explains = true;
  /// What is planned is compared with other plans, and not executed: memory is
  /// packed until it fits, and no longer.
  bool onlyCompares = false;
  /// Whether there is a plan is asked, not which is the shortest.
  bool anyWillDo = false;
  /// Where nothing is found nothing else is tried: limits that are left out
  /// elsewhere are looked at, too.
  bool isLast = true;
  /// Where there is no plan: becomes whether such limits were left out.
  bool *leftOut = nullptr;
};

/// --baechi-place-and-plan that also fills in \p report, unless it is null, and
/// is watched.
std::unique_ptr<mlir::Pass>
createPlaceAndPlan(const PlaceAndPlanOptions &options,
                   PlaceAndPlanReport *report, PlanWatch watch);

} // namespace baechi

#endif // BAECHI_TRANSFORMS_PLANWATCH_H

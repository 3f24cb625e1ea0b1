//===- Judge.cpp - How good a given placement is ----------------*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Baechi/Placement/Study/Judge.h"
#include "Schedule/Period.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

using namespace baechi::placement;

PlaceResult baechi::placement::judge(const Problem &problem,
                                     const Placement &placement,
                                     const PlaceOptions &options) {
  PlaceResult result;
  if (auto errors = check(problem); !errors.empty()) {
    result.error = fmt::format("{}", fmt::join(errors, "\n"));
    return result;
  }
  if (auto violations = verify(problem, placement); !violations.empty()) {
    result.error = fmt::format("{}", fmt::join(violations, "\n"));
    return result;
  }
  // The bound and the single devices come with the cheapest placer.
  PlaceOptions alone;
  alone.placer = "single";
  alone.grouping.clear();
  alone.budget = Budget::none();
  alone.objective = options.objective;
  alone.progress = options.progress;
  result = place(problem, alone);
  result.error.clear();
  result.winner = "given";
  result.maxLoadNs =
      problem.graph.ops.empty() ? 0 : maxLoad(Model(problem), placement);
  if (options.objective == Objective::Period) {
    Period period = PeriodReplay(Model(problem)).run(placement);
    result.periodNs = period.ns();
    result.cycleNs = period.cycleNs;
    result.cycleSteps = period.cycle;
  }
  result.usage = usage(problem, placement);
  result.placement = placement;
  return result;
}

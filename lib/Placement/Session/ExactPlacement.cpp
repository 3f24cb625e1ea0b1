//===- ExactPlacement.cpp - The best of all placements ----------*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Baechi/Placement/Session/ExactPlacement.h"
#include "Exact/BranchAndBound.h"
#include "Exact/Windows.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <exception>

using namespace baechi::placement;
using namespace baechi::placement::exact;

namespace {

ExactResult searchAll(const Problem &problem, const ExactOptions &options) {
  ExactResult result;
  if (auto errors = check(problem); !errors.empty()) {
    result.error = fmt::format("{}", fmt::join(errors, "\n"));
    return result;
  }
  if (options.objective == Objective::Period) {
    result.error = "the exact search knows nothing of steps that overlap: ask "
                   "for makespan or max-load";
    return result;
  }
  Model model(problem);
  if (result.error = whyTooLarge(model); !result.error.empty())
    return result;
  if (options.start) {
    result.placement = *options.start;
  } else if (options.startFromPlace) {
    PlaceOptions heuristics;
    heuristics.objective = options.objective;
    result.placement = place(problem, heuristics).placement;
  }
  if (result.placement) {
    if (auto errors = verify(problem, *result.placement); !errors.empty()) {
      result.placement.reset();
      result.error = "the placement to start from is not valid: " + errors[0];
      return result;
    }
    result.valueNs = options.objective == Objective::MaxLoad
                         ? maxLoad(model, result.placement->device)
                         : result.placement->makespanNs;
  }
  Found found = exact::search(model, options.objective,
                              result.placement ? result.valueNs : never,
                              options.nodeLimit);
  result.nodes = found.nodes;
  if (found.value != never) {
    result.placement = exact::toPlacement(found);
    result.valueNs = found.value;
    if (auto errors = verify(problem, *result.placement); !errors.empty()) {
      result.placement.reset();
      result.error =
          "internal error: the exact search's placement is not valid: " +
          errors[0];
      return result;
    }
  }
  if (!found.complete)
    result.status = ExactStatus::Limit;
  else
    result.status =
        result.placement ? ExactStatus::Optimal : ExactStatus::Infeasible;
  result.lowerBoundNs = found.complete ? result.valueNs : found.bound;
  return result;
}

} // namespace

ExactResult baechi::placement::exactPlacement(const Problem &problem,
                                              const ExactOptions &options) {
  try {
    return searchAll(problem, options);
  } catch (const std::exception &e) {
    ExactResult result;
    result.error = fmt::format("the exact search failed: {}", e.what());
    return result;
  }
}

std::optional<bool> baechi::placement::fitsSomehow(const Problem &problem,
                                                   int64_t nodeLimit) {
  try {
    if (!check(problem).empty())
      return std::nullopt;
    Model model(problem);
    if (!whyTooLarge(model).empty())
      return std::nullopt;
    Found found = exact::search(model, Objective::Makespan, never, nodeLimit,
                                /*enough=*/never - 1);
    if (found.value != never)
      return true;
    return found.complete ? std::optional<bool>(false) : std::nullopt;
  } catch (const std::exception &) {
    return std::nullopt;
  }
}

//===- Place.cpp - From a problem to a verified placement -------*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Baechi/Placement/Session/Place.h"
#include "Baechi/Placement/Io/Files.h"
#include "Baechi/Placement/Model/Text.h"
#include "Baechi/Placement/Session/PlaceBriefly.h"
#include "Model/DeviceOrder.h"
#include "Session/WeakerMachines.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <exception>
#include <limits>

using namespace baechi::placement;
using namespace baechi::placement::session;

namespace {

/// What is left out to be faster.
struct Extent {
  bool explains = true; ///< what is missing where nothing fits
  Help help = Help::Searched;
  /// Nothing is placed where the lower bound is so much.
  int64_t most = std::numeric_limits<int64_t>::max();
};

void placeOn(const Problem &problem, const PlaceOptions &options,
             const Extent &extent, PlaceResult &result) {
  Session own(problem, options, result, extent.explains);
  if (!own.open() || own.lowerBound() >= extent.most || !own.begin())
    return;
  Sessions sessions(problem, options, own, extent.help);
  int64_t automatic = own.automaticEvaluations();
  // Small graphs have many sessions: all get as much, that none falls behind.
  constexpr int64_t visits = 8'000'000;
  if (auto size = static_cast<int64_t>(problem.graph.ops.size());
      problem.graph.ops.size() <= fewOperators)
    automatic = std::min(automatic, visits / size);
  search::Rounds rounds(options, automatic);
  for (search::Round round;;) {
    // While something has no answer: it is worth one more round, and three on a
    // small graph, which its exact search may come to the end of.
    if (!rounds.next(round, !sessions.lackAnswer() ? 1 : own.isSmall() ? 8 : 2))
      break;
    if (!sessions.search(round))
      break;
  }
  sessions.finish();
}

/// Gives the devices of a result on the reordered machine the numbers that they
/// have in the machine itself.
void restoreDevices(const std::vector<int32_t> &order, PlaceResult &result) {
  if (result.placement)
    renumber(*result.placement, order);
  std::vector<DeviceUsage> usage(result.usage.size());
  for (size_t k = 0; k < usage.size(); ++k)
    usage[order[k]] = result.usage[k];
  result.usage = std::move(usage);
}

} // namespace

const std::vector<std::string> &baechi::placement::placerNames() {
  static const std::vector<std::string> names = [] {
    std::vector<std::string> result;
    for (const placers::Placer &placer : placers::allPlacers())
      result.emplace_back(placer.name);
    return result;
  }();
  return names;
}

int64_t baechi::placement::objectiveNs(const PlaceResult &result,
                                       Objective objective) {
  switch (objective) {
  case Objective::Makespan:
    break;
  case Objective::MaxLoad:
    return result.maxLoadNs;
  case Objective::Period:
    return result.periodNs;
  }
  return result.placement->makespanNs;
}

static PlaceResult placed(const Problem &problem, const PlaceOptions &options,
                          const Extent &extent) {
  PlaceResult result;
  try {
    const auto &names = placerNames();
    if (std::find(names.begin(), names.end(), options.placer) == names.end()) {
      result.error = fmt::format(
          "unknown placer '{}'{}: the placers are {}", options.placer,
          suggestion(options.placer, names), fmt::join(names, ", "));
      return result;
    }
    const auto &steps = groupingNames();
    for (const std::string &step : options.grouping)
      if (std::find(steps.begin(), steps.end(), step) == steps.end()) {
        result.error =
            fmt::format("unknown grouping step '{}'{}: the steps are "
                        "{}",
                        step, suggestion(step, steps), fmt::join(steps, ", "));
        return result;
      }
    if (auto errors = check(problem); !errors.empty()) {
      result.error = fmt::format("{}", fmt::join(errors, "\n"));
      return result;
    }
    if (problem.machine.nodes && options.objective != Objective::Makespan) {
      result.error = fmt::format(
          "--objective={} knows nothing of nodes and their network cards: list "
          "devices and links, or leave it out",
          objectiveText(options.objective));
      return result;
    }
    if (problem.machine.stagedThrough &&
        options.objective == Objective::Period) {
      result.error = "--objective=period knows nothing of transfers that are "
                     "staged: leave out \"staged_through\", or ask for "
                     "max-load";
      return result;
    }
    std::vector<int32_t> order = deviceOrder(problem);
    if (std::is_sorted(order.begin(), order.end())) {
      placeOn(problem, options, extent, result);
    } else {
      Problem reordered{problem.graph, reorder(problem.machine, order)};
      placeOn(reordered, options, extent, result);
      restoreDevices(order, result);
    }
  } catch (const Cancelled &) {
    result.placement.reset();
    result.error = cancelledError;
  } catch (const std::exception &e) {
    result.placement.reset();
    result.error = fmt::format("placement failed: {}", e.what());
  }
  return result;
}

PlaceResult baechi::placement::place(const Problem &problem,
                                     const PlaceOptions &options) {
  return placed(problem, options, {});
}

PlaceResult baechi::placement::placeBriefly(const Problem &problem,
                                            const PlaceOptions &options) {
  return placed(problem, options, {.explains = false});
}

PlaceResult baechi::placement::placeBelow(const Problem &problem,
                                          const PlaceOptions &options,
                                          int64_t most) {
  return placed(problem, options, {.most = most});
}

PlaceResult baechi::placement::placeByPlacers(const Problem &problem,
                                              PlaceOptions options,
                                              int64_t most) {
  // A search begins with more.
  options.budget = Budget::ofEvaluations(1);
  return placed(problem, options, {.help = Help::None, .most = most});
}

PlaceResult baechi::placement::placeOnce(const Problem &problem,
                                         const PlaceOptions &options,
                                         int64_t most) {
  return placed(problem, options, {.help = Help::Placed, .most = most});
}

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
#include "Session/Session.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <deque>
#include <exception>

using namespace baechi::placement;
using namespace baechi::placement::session;

namespace {

/// Graphs of up to so many operators are also placed on all weaker machines,
/// those of up to `manyOperators` on the weakest: larger ones have no time for
/// the same candidates and search once more.
constexpr size_t fewOperators = 1000, manyOperators = 50'000;

/// The same machine where its links can do less at a time, and a session on it.
struct Weaker {
  Weaker(const Session &own, const Problem &given, LinkModel linkModel,
         const PlaceOptions &options)
      : problem(given), options(options),
        name(fmt::format("{} links", linkModelName(linkModel))),
        session(problem, this->options, result, own) {
    problem.machine.linkModel = linkModel;
    this->options.progress = nullptr;
  }

  Problem problem;
  PlaceOptions options;
  PlaceResult result;
  std::string name;
  Session session;
};

/// A session for every link model that allows less than the problem's, the
/// least first; for the least alone where there are more than few operators.
std::deque<Weaker> weakerSessions(const Session &own, const Problem &problem,
                                  const PlaceOptions &options) {
  std::deque<Weaker> sessions;
  if (problem.graph.ops.size() > manyOperators ||
      problem.machine.stagedThrough || problem.machine.devices.size() < 2)
    return sessions;
  for (LinkModel less : {LinkModel::Sequential, LinkModel::Duplex,
                         LinkModel::Parallel, LinkModel::Unlimited}) {
    if (less == problem.machine.linkModel ||
        (!sessions.empty() && problem.graph.ops.size() > fewOperators))
      break;
    sessions.emplace_back(own, problem, less, options);
  }
  return sessions;
}

void placeOn(const Problem &problem, const PlaceOptions &options, bool explains,
             PlaceResult &result) {
  Session own(problem, options, result, explains);
  if (!own.begin())
    return;
  std::deque<Weaker> weaker = weakerSessions(own, problem, options);
  // Each takes over what the one before it has found.
  auto forEach = [&](auto visit) {
    const Weaker *before = nullptr;
    for (Weaker &each : weaker) {
      own.phase(each.name);
      if (before)
        each.session.takeOver(before->name, before->session);
      visit(each.session);
      before = &each;
    }
    own.phase("search");
    if (before)
      own.takeOver(before->name, before->session);
    visit(own);
  };
  for (Weaker &each : weaker) {
    own.phase(each.name);
    each.session.begin();
  }
  int64_t automatic = own.automaticEvaluations();
  // Up to four sessions: all link models get as much, that none falls behind.
  constexpr int64_t visits = 8'000'000;
  if (auto size = static_cast<int64_t>(problem.graph.ops.size());
      problem.graph.ops.size() <= fewOperators)
    automatic = std::min(automatic, visits / size);
  search::Rounds rounds(options, automatic);
  for (search::Round round;;) {
    // While something has no answer: it is worth one more round, and three on a
    // small graph, which its exact search may come to the end of.
    bool isUrgent = !own.hasWinner();
    for (const Weaker &each : weaker)
      isUrgent |= !each.session.hasWinner();
    if (!rounds.next(round, !isUrgent ? 1 : own.isSmall() ? 8 : 2))
      break;
    bool goesOn = false;
    forEach([&](Session &session) {
      if (!session.isDone())
        session.search(round);
      goesOn |= !session.isDone();
    });
    if (!goesOn)
      break;
  }
  forEach([](Session &session) { session.lastResort(); });
  own.finish();
}

/// Gives the devices of a result on the reordered machine the numbers that they
/// have in the machine itself.
void restoreDevices(const std::vector<int32_t> &order, PlaceResult &result) {
  if (result.placement) {
    for (int32_t &d : result.placement->device)
      d = order[d];
    for (Transfer &transfer : result.placement->transfers) {
      transfer.from = order[transfer.from];
      transfer.to = order[transfer.to];
    }
  }
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
                          bool explains) {
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
      placeOn(problem, options, explains, result);
    } else {
      Problem reordered{problem.graph, reorder(problem.machine, order)};
      placeOn(reordered, options, explains, result);
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
  return placed(problem, options, /*explains=*/true);
}

PlaceResult baechi::placement::placeBriefly(const Problem &problem,
                                            const PlaceOptions &options) {
  return placed(problem, options, /*explains=*/false);
}

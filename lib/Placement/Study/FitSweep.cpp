//===- FitSweep.cpp - The step over the memory ----------------------------===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Baechi/Placement/Study/FitSweep.h"
#include "Baechi/Placement/Model/Text.h"
#include "Baechi/Placement/Recompute/Sums.h"
#include "Study/FitMeans.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <array>
#include <set>

using namespace baechi::placement;
using namespace baechi::placement::study;

const FitWay *FitPoint::best() const {
  const FitWay *best = nullptr;
  for (const FitWay *way : {&order, &again, &pool, &both, &inTurn})
    if (way->fits && (!best || way->stepNs < best->stepNs))
      best = way;
  return best;
}

const char *FitPoint::bestName() const {
  const FitWay *way = best();
  return way == &order   ? "order"
         : way == &again ? "again"
         : way == &pool  ? "pool"
         : way == &both  ? "both"
         : way           ? "sums in turn"
                         : "none";
}

namespace {

class FitSweeper {
public:
  FitSweeper(const Problem &given, const FitSweepOptions &options)
      : given(given), graph(given.graph), options(options),
        means(given, options.place, /*keepsPlans=*/false, result) {}

  FitSweep run();

private:
  std::vector<int64_t> limits() const;
  void sumInTurn();

  const Problem &given;
  const Graph &graph;
  const FitSweepOptions &options;
  FitSweep result;
  FitMeans means;
};

/// The memories that are asked for, the most first.
std::vector<int64_t> FitSweeper::limits() const {
  std::set<int64_t> all;
  for (const SweepMemory &memory : options.memory)
    all.insert(
        memory.kind == SweepMemory::Kind::AsIs ? means.memory()
        : memory.kind == SweepMemory::Kind::Bytes
            ? static_cast<int64_t>(memory.value)
            : static_cast<int64_t>(static_cast<double>(result.fileBytes) *
                                   memory.value / 100));
  return {all.rbegin(), all.rend()};
}

/// The same memories for the graph whose sums are done one after the other.
void FitSweeper::sumInTurn() {
  if (std::vector<int32_t> few = sumsOfTwo(graph, options.sums); !few.empty())
    result.notes.push_back(fmt::format(
        "of the {} operators that are to be done in turn {} read two tensors "
        "or fewer, as '{}', and stay as they are",
        options.sums.size(), few.size(), graph.ops[few.front()].name));
  Problem written{withSumsInTurn(graph, options.sums), given.machine};
  FitSweepOptions again;
  again.place = options.place;
  if (again.place.progress)
    again.place.progress = [this](const std::string &what) {
      means.say("sums in turn: " + what);
    };
  for (const FitPoint &point : result.points)
    again.memory.push_back(
        {SweepMemory::Kind::Bytes, static_cast<double>(point.memoryBytes)});
  FitSweep found = FitSweeper(written, again).run();
  result.floorInTurn = found.floor;
  for (size_t k = 0; k < result.points.size(); ++k)
    if (const FitWay *best = found.points[k].best())
      result.points[k].inTurn = *best;
}

FitSweep FitSweeper::run() {
  if (!result.error.empty() || graph.ops.empty())
    return std::move(result);
  means.findBases();
  result.mayBeSum &= options.sums.empty();
  std::vector<int64_t> all = limits();
  for (int64_t limit : all) {
    FitPoint &point = result.points.emplace_back();
    point.memoryBytes = limit;
    std::string where = fmt::format("{} of {}, {}", result.points.size(),
                                    all.size(), bytesText(limit));
    means.say(where + ": order");
    point.order = means.inOrder(limit);
    if (limit < result.floor.bytes)
      continue;
    means.say(where + ": running again");
    point.again = means.runningAgain(limit);
    means.say(where + ": waiting in the pool");
    point.pool = means.waiting(limit);
    means.say(where + ": both");
    if (!point.order.fits)
      point.both = means.withBoth(limit, FitMeans::Picked::Last);
    for (const FitWay *way : {&point.pool, &point.again, &point.order})
      if (way->fits && (!point.both.fits || way->stepNs <= point.both.stepNs))
        point.both = *way;
    if (!point.order.fits)
      point.both = means.bestOfSmall(point.both, limit);
  }
  // What fits less memory fits more.
  constexpr std::array ways = {&FitPoint::order, &FitPoint::again,
                               &FitPoint::pool, &FitPoint::both};
  for (size_t k = result.points.size(); k-- > 1;)
    for (FitWay FitPoint::*way : ways) {
      const FitWay &less = result.points[k].*way;
      FitWay &more = result.points[k - 1].*way;
      if (less.fits && (!more.fits || less.stepNs < more.stepNs))
        more = less;
    }
  if (!options.sums.empty())
    sumInTurn();
  return std::move(result);
}

} // namespace

FitSweep baechi::placement::fitSweep(const Problem &problem,
                                     const FitSweepOptions &options) {
  FitSweep failed;
  if (auto errors = check(problem); !errors.empty()) {
    failed.error = fmt::format("{}", fmt::join(errors, "\n"));
    return failed;
  }
  failed.error = whyNoSums(problem.graph, options.sums);
  if (failed.error.empty() && !options.sums.empty() &&
      sumsOfTwo(problem.graph, options.sums).size() == options.sums.size())
    failed.error = fmt::format(
        "no sum of more than two tensors is named, as it takes to do sums in "
        "turn: '{}' reads two or fewer",
        problem.graph.ops[options.sums.front()].name);
  if (!failed.error.empty())
    return failed;
  try {
    return FitSweeper(problem, options).run();
  } catch (const FitMeans::WasCancelled &) {
    failed.error = cancelledError;
    return failed;
  }
}

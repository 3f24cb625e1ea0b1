//===- FitPlacement.cpp - Placements of graphs that do not fit ------------===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Baechi/Placement/Study/FitPlacement.h"
#include "Baechi/Placement/Model/Pool.h"
#include "Baechi/Placement/Model/Text.h"
#include "Baechi/Placement/Recompute/Sums.h"
#include "Baechi/Placement/Study/Judge.h"
#include "Study/FitMeans.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <utility>

using namespace baechi::placement;
using namespace baechi::placement::study;

/// Limits that are tried, evenly between the floor and the peak of the file's
/// order. Not of what a person asks for, so that less memory never finds what
/// more has not seen.
static constexpr int limitsTried = 24;
/// And some closer to the floor, each half as far from it as the one before.
static constexpr int limitsClose = 3;

namespace {

class Fitter {
public:
  Fitter(const Problem &given, const PlaceOptions &options)
      : given(given), options(options),
        means(given, options, /*keepsPlans=*/true, found.about) {}

  FitPlan run();

private:
  std::vector<int64_t> limits() const;
  bool mayUseOne() const;
  void offer(FitWay way, const char *by);
  void tryWithin(int64_t limit);
  bool isBest() const {
    return found.way.fits && found.way.stepNs <= found.about.unlimitedNs;
  }
  void fitOne();
  std::vector<RepeatedOrder> rewritesOfSeveral() const;
  void fitSeveral();
  std::string whyNot() const;
  void writeOut();

  const Problem &given;
  const PlaceOptions &options;
  FitPlan found;
  FitMeans means;
  bool hasSearched = false; ///< all orders of a small graph
};

/// The most first.
std::vector<int64_t> Fitter::limits() const {
  std::vector<int64_t> all;
  int64_t floor = found.about.floor.bytes,
          room = std::max<int64_t>(found.about.fileBytes - floor, 0);
  for (int number = limitsTried; number-- > 1;)
    all.push_back(floor + room * number / limitsTried);
  for (int close = 1; close <= limitsClose; ++close)
    all.push_back(floor + (room / limitsTried >> close));
  all.push_back(floor);
  all.erase(std::unique(all.begin(), all.end()), all.end());
  return all;
}

/// Whether no operator is to be on another device.
bool Fitter::mayUseOne() const {
  return std::all_of(given.graph.ops.begin(), given.graph.ops.end(),
                     [&](const Operator &op) {
                       return !op.pin || *op.pin == found.about.device;
                     });
}

void Fitter::offer(FitWay way, const char *by) {
  if (!way.fits || way.peakBytes > means.memory() ||
      (found.way.fits && found.way.stepNs <= way.stepNs))
    return;
  found.way = std::move(way);
  found.by = by;
}

void Fitter::tryWithin(int64_t limit) {
  // Also for what is beyond the memory: the rest of it may wait in the pool.
  offer(means.runningAgain(limit), "again");
  if (limit > means.memory() || !means.poolNumber())
    return;
  offer(means.waiting(limit), "pool");
  offer(means.withBoth(limit, FitMeans::Picked::Evenly), "both");
  // Less memory has nothing to add to a search over all orders.
  if (!std::exchange(hasSearched, true))
    offer(means.bestOfSmall(found.way, limit), "both");
}

void Fitter::fitOne() {
  int64_t memory = means.memory();
  if (found.about.leanBytes <= memory) {
    offer(means.inOrder(memory), "order");
    return;
  }
  // Where all orders are searched, more memory has all plans of less, and each
  // further limit would take a second.
  if (areAllSearched(given.graph))
    tryWithin(memory);
  if (found.way.fits)
    return;
  std::vector<int64_t> all = limits();
  // Nothing is shorter than each operator once, one after the other.
  for (size_t k = 0; k < all.size() && !isBest(); ++k) {
    means.say(fmt::format("fitting the memory: {} of {}, {}", k + 1, all.size(),
                          bytesText(all[k])));
    tryWithin(all[k]);
  }
  if (!found.way.fits)
    tryWithin(memory);
}

/// The plan on the machine's own devices, where there is one.
void Fitter::writeOut() {
  if (!found.way.fits)
    return;
  found.problem = {found.way.plan->problem.graph, given.machine};
  Placement placement = found.way.plan->placement;
  auto number = [&](int32_t device) {
    return device == 0 ? means.deviceNumber() : *means.poolNumber();
  };
  for (int32_t &device : placement.device)
    device = number(device);
  for (Transfer &transfer : placement.transfers) {
    transfer.from = number(transfer.from);
    transfer.to = number(transfer.to);
  }
  found.result = judge(found.problem, placement, options);
  found.way.plan = nullptr;
}

/// What runs again for all memories together, the mildest first.
std::vector<RepeatedOrder> Fitter::rewritesOfSeveral() const {
  int64_t most = computingBytes(given.machine);
  std::vector<RepeatedOrder> orders;
  for (int64_t limit : limits()) {
    if (limit > most)
      continue;
    std::optional<RepeatedOrder> order = means.repeatedWithin(limit);
    if (order && order->againNs > 0 &&
        (orders.empty() || orders.back().runs != order->runs))
      orders.push_back(std::move(*order));
  }
  std::stable_sort(orders.begin(), orders.end(),
                   [](const RepeatedOrder &a, const RepeatedOrder &b) {
                     return a.againNs < b.againNs;
                   });
  return orders;
}

/// Placed as other graphs are: the first that fits, sought as if all leaner
/// ones fitted, too.
void Fitter::fitSeveral() {
  std::vector<RepeatedOrder> orders = rewritesOfSeveral();
  PlaceOptions brief = options;
  brief.progress = nullptr;
  size_t low = 0, high = orders.size();
  while (low < high) {
    size_t middle = low + (high - low) / 2;
    means.say(fmt::format("placing what runs again: {} ways", high - low));
    Problem written{withRepeats(given.graph, orders[middle].runs),
                    given.machine};
    PlaceResult placed = place(written, brief);
    if (placed.error == cancelledError)
      throw FitMeans::WasCancelled();
    if (!placed.placement) {
      low = middle + 1;
      continue;
    }
    high = middle;
    if (found.result.placement &&
        found.result.placement->makespanNs <= placed.placement->makespanNs)
      continue;
    found.way = {};
    found.way.fits = true;
    found.way.stepNs = placed.placement->makespanNs;
    means.countRepeats(orders[middle].runs, found.way);
    found.by = "again";
    found.isOfSeveral = true;
    found.problem = std::move(written);
    found.result = std::move(placed);
  }
}

std::string Fitter::whyNot() const {
  const FitFloor &floor = found.about.floor;
  int64_t memory = means.memory();
  if (numComputing(given.machine) == 1 && floor.bytes > memory)
    return fmt::format("whatever runs again or waits in a pool, '{}' by itself "
                       "needs {} bytes ({}) with what is resident, of {} ({})",
                       floor.op, floor.bytes, bytesText(floor.bytes), memory,
                       bytesText(memory));
  return "nothing that runs again or waits in a pool makes it fit, of what was "
         "tried";
}

FitPlan Fitter::run() {
  if (!found.about.error.empty()) {
    found.result.error = found.about.error;
    return std::move(found);
  }
  means.findBases();
  if (mayUseOne())
    fitOne();
  writeOut();
  if (numComputing(given.machine) > 1)
    fitSeveral();
  if (!found.result.placement && found.result.error.empty())
    found.result.error = whyNot();
  return std::move(found);
}

} // namespace

static bool isShorter(const FitPlan &a, const FitPlan &b) {
  return a.result.placement &&
         (!b.result.placement ||
          a.result.placement->makespanNs < b.result.placement->makespanNs);
}

FitPlan baechi::placement::fitPlacement(const Problem &problem,
                                        const PlaceOptions &options,
                                        const std::vector<int32_t> &sums) {
  FitPlan failed;
  std::string &error = failed.result.error;
  if (auto errors = check(problem); !errors.empty())
    error = fmt::format("{}", fmt::join(errors, "\n"));
  else if (problem.graph.ops.empty())
    error = "the graph has no operators";
  else if (options.objective != Objective::Makespan || problem.machine.nodes)
    error = "only the step on listed devices is fitted: leave out --objective, "
            "and nodes";
  else
    error = whyNoSums(problem.graph, sums);
  if (!error.empty())
    return failed;
  try {
    FitPlan plan = Fitter(problem, options).run();
    if (sums.empty())
      return plan;
    Problem written{withSumsInTurn(problem.graph, sums), problem.machine};
    FitPlan inTurn = Fitter(written, options).run();
    if (!isShorter(inTurn, plan))
      return plan;
    inTurn.by += ", sums in turn";
    return inTurn;
  } catch (const FitMeans::WasCancelled &) {
    error = cancelledError;
    return failed;
  }
}

//===- BranchAndBound.cpp - Branch and bound over assignments ------------*- C++
//-*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Exact/BranchAndBound.h"
#include "Exact/Feasibility.h"
#include "Exact/Ordering.h"
#include "Exact/Windows.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

using namespace baechi::placement;
using namespace baechi::placement::exact;

namespace {

class Search {
public:
  Search(const Model &model, Objective objective, int64_t cutoff, Effort effort,
         int64_t enough)
      : instance(model), model(model), objective(objective),
        windows(instance, objective), effort(std::move(effort)), cutoff(cutoff),
        enough(enough) {}

  Found run();

private:
  bool stopped() const { return effort.spent() || cutoff <= enough; }
  Unit pick(const Domains &domains) const;
  bool interchangeable(const Domains &domains, int32_t a, int32_t b) const;
  void branch(const Domains &domains, int64_t bound);
  void decide(const Assignment &device, int64_t bound);
  void keep(int64_t value, const Assignment &device, Timetable timetable);
  void polish();

  Instance instance;
  const Model &model;
  Objective objective;
  Windows windows;
  Effort effort;
  Found found;
  int64_t cutoff;
  int64_t enough;
  /// The least bound of what was left unexplored at the limit.
  int64_t openBound = never;
};

/// The unit with the fewest devices left, the first in topological order.
Unit Search::pick(const Domains &domains) const {
  Unit best = -1;
  int32_t fewest = 0;
  for (int32_t i : model.order) {
    Unit u = model.unit[i];
    int32_t count = __builtin_popcount(domains[u]);
    if (count > 1 && (best < 0 || count < fewest)) {
      best = u;
      fewest = count;
    }
  }
  return best;
}

/// True when every placement of \p domains has an equal one with the two
/// devices exchanged.
bool Search::interchangeable(const Domains &domains, int32_t a,
                             int32_t b) const {
  return instance.alike(a, b) &&
         std::all_of(domains.begin(), domains.end(), [&](DeviceSet set) {
           return (set >> a & 1) == (set >> b & 1);
         });
}

void Search::keep(int64_t value, const Assignment &device,
                  Timetable timetable) {
  if (value >= cutoff)
    return;
  cutoff = found.value = value;
  found.device = device;
  found.timetable = std::move(timetable);
}

/// All devices are known: is there a schedule, and what is the best?
void Search::decide(const Assignment &device, int64_t bound) {
  Assigned assigned(instance, device);
  if (!assigned.connected)
    return;
  int64_t load = 0;
  if (objective == Objective::MaxLoad) {
    load = maxLoad(model, device);
    if (load >= cutoff)
      return;
  }
  if (assigned.anyTight) {
    Feasibility feasibility(assigned, effort);
    Feasibility::Answer answer = feasibility.run();
    if (answer == Feasibility::Answer::Never)
      return;
    if (answer == Feasibility::Answer::Fits) {
      Timetable timetable = feasibility.schedule();
      if (timetable.makespan != never) {
        int64_t value =
            objective == Objective::MaxLoad ? load : timetable.makespan;
        keep(value, device, std::move(timetable));
      }
    }
  }
  if (objective == Objective::Makespan && !stopped()) {
    Timetable timetable;
    if (Ordering(assigned, effort)
            .improve(cutoff, std::max(bound, enough), timetable)) {
      int64_t value = timetable.makespan;
      keep(value, device, std::move(timetable));
    }
  } else if (objective == Objective::MaxLoad && load < cutoff) {
    // Any schedule will do.
    Timetable timetable;
    if (Ordering(assigned, effort).improve(never, never - 1, timetable))
      keep(load, device, std::move(timetable));
  }
  if (effort.spent())
    openBound = std::min(openBound, bound);
}

void Search::branch(const Domains &domains, int64_t bound) {
  Unit u = pick(domains);
  if (u < 0) {
    Assignment device(model.numNodes);
    for (int32_t i = 0; i < model.numNodes; ++i)
      device[i] = __builtin_ctz(domains[model.unit[i]]);
    decide(device, bound);
    return;
  }
  struct Child {
    int64_t bound;
    int32_t device;
    Domains domains;
  };
  std::vector<Child> children;
  DeviceSet explored = 0;
  forEachBit(domains[u], [&](int32_t d) {
    bool repeats = false;
    forEachBit(explored,
               [&](int32_t e) { repeats |= interchangeable(domains, d, e); });
    if (repeats)
      return;
    Child child{bound, d, domains};
    child.domains[u] = DeviceSet(1) << d;
    // An operator that could change places with this one has been everywhere
    // that this one has.
    int32_t i = model.members[u].front();
    for (int32_t k = 0; k < model.numNodes; ++k)
      if (k != i && domains[model.unit[k]] == domains[u] &&
          instance.twins(i, k))
        child.domains[model.unit[k]] &= ~explored;
    explored |= DeviceSet(1) << d;
    ++effort.nodes;
    if (windows.narrow(child.domains, cutoff, child.bound))
      children.push_back(std::move(child));
  });
  std::stable_sort(
      children.begin(), children.end(),
      [](const Child &a, const Child &b) { return a.bound < b.bound; });
  for (const Child &child : children) {
    if (child.bound >= cutoff)
      continue;
    if (stopped())
      openBound = std::min(openBound, child.bound);
    else
      branch(child.domains, child.bound);
  }
}

/// A pipeline's placement has some schedule: make it a short one, within
/// reason.
void Search::polish() {
  constexpr int64_t nodes = 20'000;
  Assigned assigned(instance, found.device);
  Effort extra;
  extra.limit = nodes;
  Timetable timetable;
  if (Ordering(assigned, extra).improve(found.timetable.makespan, 0, timetable))
    found.timetable = std::move(timetable);
}

Found Search::run() {
  Domains domains(model.numUnits, 0);
  for (Unit u = 0; u < model.numUnits; ++u)
    for (int32_t d = 0; d < model.numDevices; ++d)
      if (model.mayUse(u, d))
        domains[u] |= DeviceSet(1) << d;
  int64_t bound = 0;
  if (windows.narrow(domains, cutoff, bound)) {
    enough = std::max(enough, bound);
    branch(domains, bound);
  }
  found.complete = !effort.spent();
  found.nodes = effort.nodes;
  found.bound = found.complete ? cutoff : std::min(cutoff, openBound);
  if (objective == Objective::MaxLoad && found.value != never)
    polish();
  return std::move(found);
}

} // namespace

Found exact::search(const Model &model, Objective objective, int64_t cutoff,
                    int64_t nodeLimit, int64_t enough,
                    const std::function<bool()> &expired) {
  return Search(model, objective, cutoff,
                {.limit = nodeLimit, .expired = expired}, enough)
      .run();
}

Placement exact::toPlacement(const Found &found) {
  Placement placement;
  placement.device = found.device;
  placement.startNs = found.timetable.start;
  placement.transfers = found.timetable.transfers;
  placement.makespanNs = found.timetable.makespan;
  return placement;
}

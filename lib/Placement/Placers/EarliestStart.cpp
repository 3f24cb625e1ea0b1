//===- EarliestStart.cpp - m-ETF and m-SCT's schedule -----------*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Placers/LookAhead.h"
#include "Placers/PartialSchedule.h"
#include "Placers/Placers.h"
#include "Placers/ReadyQueue.h"
#include "Schedule/Schedule.h"

#include <algorithm>
#include <optional>

using namespace baechi::placement;
using namespace baechi::placement::placers;

namespace {

class EarliestStartPlacer {
public:
  EarliestStartPlacer(const Model &model, std::span<const int32_t> favourites,
                      bool limited, std::span<const double> urgencyFactor,
                      Ahead ahead);
  EarliestStart run();

private:
  struct Choice {
    int32_t node = -1;
    int32_t device = -1;
    int64_t key = never; ///< start plus what is lost on a slower device
    int64_t urgency = 0;
    bool better(const Choice &other) const {
      return std::tuple(key, -urgency, node, device) <
             std::tuple(other.key, -other.urgency, other.node, other.device);
    }
  };

  bool isReady(int32_t node) const {
    return waiting[node] == 0 && !schedule.placed(node) &&
           !schedule.isLazy(node);
  }
  void becomeReady(int32_t node);
  Choice makeChoice(int32_t node, int32_t d, int64_t arrival) const;
  Choice firstOn(int32_t d);
  Choice forAwakeDevice(int32_t d);
  bool urgentOn(const Choice &choice) const;
  Choice choose();
  bool takesFavourite(const Choice &choice) const;
  Choice lookingAhead(const Choice &first);
  bool forceNext();
  void commit(int32_t node, int32_t d);

  const Model &model;
  std::span<const int32_t> favourites;
  int32_t devices;
  PartialSchedule schedule;
  std::vector<int64_t> urgency; ///< longest path to the end, with transfers
  std::vector<int32_t> rank;    ///< by urgency: 0 for the most urgent
  std::vector<int64_t> shortestTime;
  std::vector<int32_t> waiting; ///< sources that are not placed
  std::vector<ReadyQueue> queues;
  std::vector<int32_t> last; ///< per device, its last operator
  size_t nextToForce = 0;    ///< in topological order
  Ahead ahead;
  std::optional<LookAhead> lookAhead;
};

EarliestStartPlacer::EarliestStartPlacer(const Model &model,
                                         std::span<const int32_t> favourites,
                                         bool limited,
                                         std::span<const double> urgencyFactor,
                                         Ahead ahead)
    : model(model), favourites(favourites), devices(model.numDevices),
      schedule(model, limited), urgency(model.numNodes, 0),
      waiting(model.numNodes, 0), last(devices, -1), ahead(ahead) {
  for (int32_t k = model.numNodes; k-- > 0;) {
    int32_t i = model.order[k];
    auto [begin, end] = model.tensorsOf(i);
    for (int32_t t = begin; t < end; ++t) {
      int64_t transfer = model.meanTransfer(t);
      for (int32_t user : model.users[t])
        urgency[i] = std::max(urgency[i], urgency[user] + transfer);
    }
    for (int32_t user : model.controlUsers[i])
      urgency[i] = std::max(urgency[i], urgency[user]);
    urgency[i] += model.meanTime(i);
  }
  for (size_t i = 0; i < urgencyFactor.size(); ++i)
    urgency[i] = static_cast<int64_t>(static_cast<double>(urgency[i]) *
                                      urgencyFactor[i]);
  // Pairs that lie together: less to fetch than by way of the nodes.
  std::vector<std::pair<int64_t, int32_t>> byUrgency;
  byUrgency.reserve(model.numNodes);
  for (int32_t i = 0; i < model.numNodes; ++i)
    byUrgency.emplace_back(-urgency[i], i);
  std::sort(byUrgency.begin(), byUrgency.end());
  rank.resize(model.numNodes);
  for (int32_t k = 0; k < model.numNodes; ++k)
    rank[byUrgency[k].second] = k;
  shortestTime.reserve(model.numNodes);
  for (int32_t i = 0; i < model.numNodes; ++i) {
    shortestTime.push_back(model.minTime(i));
    model.forEachSource(i,
                        [&](int32_t s) { waiting[i] += !schedule.isLazy(s); });
  }
  for (int32_t d = 0; d < devices; ++d)
    queues.emplace_back(schedule, rank, d, devices);
  if (ahead != Ahead::No)
    lookAhead.emplace(model, schedule);
}

void EarliestStartPlacer::becomeReady(int32_t node) {
  schedule.fetchOperands(node);
  for (int32_t d = 0; d < devices; ++d)
    if (schedule.open(node, d))
      queues[d].add(node);
}

EarliestStartPlacer::Choice
EarliestStartPlacer::makeChoice(int32_t node, int32_t d,
                                int64_t arrival) const {
  int64_t start = std::max(arrival, schedule.deviceFree(d));
  return {node, d, start + model.timeOf(node, d) - shortestTime[node],
          urgency[node]};
}

EarliestStartPlacer::Choice EarliestStartPlacer::firstOn(int32_t d) {
  ReadyQueue::First first = queues[d].first();
  return first.node < 0 ? Choice() : makeChoice(first.node, d, first.start);
}

/// True when the operator could start nowhere earlier.
bool EarliestStartPlacer::urgentOn(const Choice &choice) const {
  for (int32_t d = 0; d < devices; ++d) {
    if (d == choice.device || !schedule.open(choice.node, d))
      continue;
    int64_t arrival = schedule.arrivalTime(choice.node, d);
    if (arrival != never &&
        makeChoice(choice.node, d, arrival).key <= choice.key)
      return false;
  }
  return true;
}

/// A device whose last operator has a favourite child that is not placed takes
/// that child, or an urgent operator.
EarliestStartPlacer::Choice EarliestStartPlacer::forAwakeDevice(int32_t d) {
  int32_t child = favourites[last[d]];
  Choice best;
  if (waiting[child] == 0)
    if (int64_t arrival = schedule.arrivalTime(child, d); arrival != never)
      best = makeChoice(child, d, arrival);
  Choice other = firstOn(d);
  if (other.node >= 0 && other.node != child && other.better(best) &&
      urgentOn(other))
    return other;
  return best;
}

EarliestStartPlacer::Choice EarliestStartPlacer::choose() {
  Choice best;
  for (int32_t d = 0; d < devices; ++d) {
    bool awake = !favourites.empty() && last[d] >= 0 &&
                 favourites[last[d]] >= 0 &&
                 schedule.open(favourites[last[d]], d);
    Choice choice = awake ? forAwakeDevice(d) : firstOn(d);
    if (choice.node >= 0 && choice.better(best))
      best = choice;
  }
  if (best.node >= 0)
    return best;
  // Every device waits for a child that another must make possible first.
  for (int32_t d = 0; d < devices; ++d)
    if (Choice choice = firstOn(d); choice.node >= 0 && choice.better(best))
      best = choice;
  return best;
}

bool EarliestStartPlacer::takesFavourite(const Choice &choice) const {
  int32_t parent = last[choice.device];
  return !favourites.empty() && parent >= 0 &&
         favourites[parent] == choice.node;
}

/// Where an undecided unit's first operator goes, with all that follows it.
EarliestStartPlacer::Choice
EarliestStartPlacer::lookingAhead(const Choice &first) {
  Unit u = model.unit[first.node];
  if (schedule.deviceOfUnit(u) >= 0 ||
      (ahead == Ahead::UnlessFavourite && takesFavourite(first)))
    return first;
  Choice best = first;
  int64_t least = never;
  for (int32_t d = 0; d < devices; ++d) {
    int64_t arrival = schedule.open(first.node, d)
                          ? schedule.arrivalTime(first.node, d)
                          : never;
    if (arrival == never)
      continue;
    int64_t cost =
        std::max(arrival, schedule.deviceFree(d)) + lookAhead->cost(u, d);
    if (cost < least) {
      least = cost;
      best = makeChoice(first.node, d, arrival);
    }
  }
  return best;
}

/// When every pair has been ruled out: the next operator in topological order
/// goes to the roomiest device whatever its memory says. The repair that
/// follows sees more than this rule does.
bool EarliestStartPlacer::forceNext() {
  // Lazy operators are taken along by their consumers.
  while (nextToForce < model.order.size() &&
         (schedule.placed(model.order[nextToForce]) ||
          schedule.isLazy(model.order[nextToForce])))
    ++nextToForce;
  if (nextToForce == model.order.size())
    return false;
  int32_t node = model.order[nextToForce], target = -1;
  Unit u = model.unit[node];
  int32_t fixed = schedule.deviceOfUnit(u);
  for (bool linked : {true, false})
    for (int32_t d = 0; d < devices && (linked || target < 0); ++d)
      if ((fixed < 0 ? model.mayUse(u, d) : fixed == d) &&
          (!linked || schedule.arrivalTime(node, d) != never) &&
          (target < 0 || schedule.room(d) > schedule.room(target)))
        target = d;
  commit(node, target);
  return true;
}

void EarliestStartPlacer::commit(int32_t node, int32_t d) {
  if (lookAhead && schedule.deviceOfUnit(model.unit[node]) < 0)
    lookAhead->decided(model.unit[node], d);
  // The processor may bring these meanwhile.
  model.forEachUser(node, [&](int32_t user) {
    __builtin_prefetch(&waiting[user], /*rw=*/1);
    schedule.fetchRow(user);
  });
  schedule.place(node, d);
  if (lookAhead) {
    lookAhead->placed(node, d);
    for (Unit u : schedule.newLazyUnits())
      if (u != model.unit[node])
        lookAhead->decided(u, schedule.deviceOfUnit(u));
  }
  last[d] = node;
  queues[d].changed();
  // A copy spares its other readers a transfer.
  for (int32_t t : schedule.newCopies())
    for (int32_t user : model.users[t])
      if (isReady(user) && schedule.open(user, d))
        queues[d].add(user);
  // Parameters that have got their device: their other readers were taken to
  // find them anywhere they may be.
  if (!schedule.newLazyUnits().empty())
    for (ReadyQueue &queue : queues)
      queue.changed();
  for (Unit u : schedule.newLazyUnits())
    for (int32_t e = 0; e < devices; ++e)
      if (!model.mayUse(u, e))
        for (int32_t i : model.members[u])
          model.forEachUser(i, [&](int32_t user) {
            if (isReady(user) && schedule.open(user, e))
              queues[e].add(user);
          });
  model.forEachUser(node, [&](int32_t user) {
    if (--waiting[user] == 0)
      becomeReady(user);
  });
}

EarliestStart EarliestStartPlacer::run() {
  for (int32_t i : model.order)
    if (waiting[i] == 0 && !schedule.isLazy(i))
      becomeReady(i);
  for (;;) {
    Choice choice = choose();
    if (lookAhead && choice.node >= 0)
      choice = lookingAhead(choice);
    if (choice.node < 0) {
      if (!forceNext())
        break;
    } else if (schedule.fits(choice.node, choice.device)) {
      commit(choice.node, choice.device);
    } else {
      schedule.ruleOut(choice.node, choice.device);
    }
  }
  return {std::move(schedule.device), std::move(schedule.start)};
}

} // namespace

EarliestStart baechi::placement::placers::earliestStart(
    const Model &model, std::span<const int32_t> favouriteChild, bool limited,
    std::span<const double> urgencyFactor, Ahead ahead) {
  return EarliestStartPlacer(model, favouriteChild, limited, urgencyFactor,
                             ahead)
      .run();
}

//===- OrderAnnealing.cpp - Better orders, and devices for them -*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Search/OrderAnnealing.h"
#include "Model/Random.h"
#include "Schedule/Period.h"
#include "Search/Meter.h"
#include "Search/StartOrder.h"

#include <algorithm>
#include <cmath>

using namespace baechi::placement;
using namespace baechi::placement::search;

namespace {

class OrderAnnealing {
public:
  OrderAnnealing(const Model &model, const SearchOptions &options);
  OrderResult run(const std::vector<Assignment> &starts);

private:
  /// Keys are so far apart that something fits between two.
  static constexpr int64_t gap = 4;
  /// Of all changes; the rest are other ways of copies.
  static constexpr double unitShare = 0.4, stepShare = 0.5;

  int64_t evaluate();
  void begin(const Assignment &start);
  void anneal(int64_t evaluations);
  bool moveUnit();
  void placeTransfers(int32_t tensor, bool late);
  bool moveStep();
  bool changeVia();
  void number();
  Assignment draw();
  int64_t &keyOf(int32_t step) {
    return orders.isNode(step) ? plan.nodeKey[step]
                               : plan.transferKey[step - model.numNodes];
  }
  bool sharesWith(int32_t a, int32_t b) const;

  const Model &model;
  Objective objective;
  Meter meter;
  StartOrder orders;
  PeriodReplay periods;
  Random random;
  StartPlan plan;
  std::vector<int32_t> taken; ///< the steps of the plan, in order
  std::vector<Unit> movable;
  std::vector<int32_t> byHead; ///< nodes by the longest path to them
  int64_t bestValue = never;   ///< of what fits
  std::optional<Placement> best;
};

OrderAnnealing::OrderAnnealing(const Model &model, const SearchOptions &options)
    : model(model), objective(options.objective), meter(model, options),
      orders(model), periods(model), random(options.seed), byHead(model.order) {
  for (Unit u = 0; u < model.numUnits; ++u)
    if (!model.pinned(u))
      movable.push_back(u);
  std::vector<int64_t> head(model.numNodes, 0);
  for (int32_t i : model.order)
    model.forEachUser(i, [&](int32_t user) {
      head[user] = std::max(head[user], head[i] + model.meanTime(i));
    });
  std::stable_sort(byHead.begin(), byHead.end(),
                   [&](int32_t a, int32_t b) { return head[a] < head[b]; });
}

/// The objective; more by a multiple of every share of a memory that is
/// missing.
int64_t OrderAnnealing::evaluate() {
  meter.charge(1);
  StartOrder::Value value = orders.run(plan);
  int64_t result = value.makespan;
  if (result != never && objective == Objective::MaxLoad)
    result = maxLoad(model, orders.devices());
  if (result != never && objective == Objective::Period) {
    Period period = periods.run(orders.placement());
    meter.charge(static_cast<double>(period.replayed));
    result = period.ns();
  }
  if (result == never)
    return never;
  if (value.excess == 0) {
    if (result < bestValue) {
      bestValue = result;
      best = orders.placement();
      meter.found(result);
    }
    return result;
  }
  constexpr double weight = 5, least = 1.05, most = 4e18;
  return static_cast<int64_t>(std::min(
      static_cast<double>(result) * (least + weight * value.excess) + 1, most));
}

/// Begins with an assignment, in order of the longest paths to the nodes.
void OrderAnnealing::begin(const Assignment &start) {
  plan.device.assign(model.numUnits, 0);
  for (int32_t i = 0; i < model.numNodes; ++i)
    plan.device[model.unit[i]] = start[i];
  size_t transfers = static_cast<size_t>(model.numTensors) * model.numDevices;
  plan.nodeKey.assign(model.numNodes, 0);
  plan.transferKey.assign(transfers, 0);
  plan.via.assign(transfers, StartPlan::quickest);
  for (int32_t k = 0; k < model.numNodes; ++k)
    plan.nodeKey[byHead[k]] = k * gap;
  for (size_t k = 0; k < transfers; ++k)
    plan.transferKey[k] =
        plan.nodeKey[model.producer[k / model.numDevices]] + 1;
}

/// Gives what the last schedule started its place in it as its key.
void OrderAnnealing::number() {
  taken = orders.taken();
  for (size_t k = 0; k < taken.size(); ++k)
    keyOf(taken[k]) = static_cast<int64_t>(k) * gap;
}

bool OrderAnnealing::moveUnit() {
  if (movable.empty())
    return false;
  Unit u = movable[random.below(static_cast<int64_t>(movable.size()))];
  int32_t from = plan.device[u], to = random.below(model.numDevices);
  if (to == from || !model.mayUse(u, to))
    return false;
  plan.device[u] = to;
  // Sometimes another one takes its place, or comes along.
  if (random.oneIn(3)) {
    Unit v = movable[random.below(static_cast<int64_t>(movable.size()))];
    int32_t d = plan.device[v] == to ? from : to;
    if (v != u && model.mayUse(v, d))
      plan.device[v] = d;
  }
  bool late = random.oneIn(2);
  for (int32_t i : model.members[u]) {
    auto [first, last] = model.tensorsOf(i);
    for (int32_t t = first; t < last; ++t)
      placeTransfers(t, late);
    for (int32_t t : model.operands[i])
      placeTransfers(t, late);
  }
  return true;
}

/// The transfers of a tensor come right after what makes it, or right before
/// what reads it.
void OrderAnnealing::placeTransfers(int32_t t, bool late) {
  for (int32_t d = 0; d < model.numDevices; ++d) {
    int64_t key = never;
    for (int32_t user : model.users[t])
      if (late && plan.device[model.unit[user]] == d)
        key = std::min(key, plan.nodeKey[user] - 1);
    plan.transferKey[t * model.numDevices + d] =
        key == never ? plan.nodeKey[model.producer[t]] + 1 : key;
  }
}

/// True when the order of two steps can matter by itself.
bool OrderAnnealing::sharesWith(int32_t a, int32_t b) const {
  auto ends = [&](int32_t step) {
    if (orders.isNode(step))
      return std::pair(orders.devices()[step], orders.devices()[step]);
    int32_t transfer = step - model.numNodes;
    return std::pair(orders.sourceOf(transfer), transfer % model.numDevices);
  };
  auto [p, q] = ends(a);
  auto [r, s] = ends(b);
  return p == r || p == s || q == r || q == s;
}

/// One step comes right before or after another one.
bool OrderAnnealing::moveStep() {
  auto count = static_cast<int64_t>(taken.size());
  constexpr int attempts = 4;
  for (int k = 0; k < attempts; ++k) {
    int32_t a = random.below(count), b = random.below(count);
    if (a == b || !sharesWith(taken[a], taken[b]))
      continue;
    keyOf(taken[a]) = keyOf(taken[b]) + (a < b ? 1 : -1);
    return true;
  }
  return false;
}

/// A transfer takes another way.
bool OrderAnnealing::changeVia() {
  if (model.numDevices < 3 || taken.empty())
    return false;
  int32_t step = taken[random.below(static_cast<int64_t>(taken.size()))];
  if (orders.isNode(step))
    return false;
  int32_t &via = plan.via[step - model.numNodes];
  int32_t before = via;
  via = random.below(model.numDevices + 2) + StartPlan::quickest;
  return via != before;
}

/// A run of so many evaluations, from the plan, cooling down.
void OrderAnnealing::anneal(int64_t evaluations) {
  constexpr double hot = 0.05;
  int64_t value = evaluate();
  number();
  StartPlan before = plan;
  for (int64_t k = 1; k < evaluations && meter.spent() < 1; ++k) {
    double left = 1 - static_cast<double>(k) / static_cast<double>(evaluations);
    double temperature = hot * left * left;
    double kind = random.real();
    bool changed = kind < unitShare               ? moveUnit()
                   : kind < unitShare + stepShare ? moveStep()
                                                  : changeVia();
    if (!changed) {
      // The run must end.
      meter.charge(1);
      continue;
    }
    int64_t now = evaluate();
    double allowed = static_cast<double>(value) *
                     (1 - temperature * std::log(random.real() + 1e-12));
    if (now == never ||
        (value != never && static_cast<double>(now) > allowed)) {
      plan = before;
      continue;
    }
    value = now;
    number();
    before = plan;
  }
}

/// Devices by chance.
Assignment OrderAnnealing::draw() {
  Assignment result(model.numNodes);
  for (Unit u = 0; u < model.numUnits; ++u) {
    int32_t d = random.below(model.numDevices);
    while (!model.mayUse(u, d))
      d = (d + 1) % model.numDevices;
    for (int32_t i : model.members[u])
      result[i] = d;
  }
  return result;
}

OrderResult OrderAnnealing::run(const std::vector<Assignment> &starts) {
  constexpr double shortest = 1000, share = 0.1;
  for (size_t k = 0; meter.spent() < 1; ++k) {
    if (k < starts.size())
      begin(starts[k]);
    else
      begin(best && k % 2 == 0 ? best->device : draw());
    anneal(
        static_cast<int64_t>(std::max(shortest, share * meter.evaluations())));
  }
  return {std::move(best), static_cast<int64_t>(meter.evaluations())};
}

} // namespace

OrderResult
baechi::placement::search::annealOrders(const Model &model,
                                        const std::vector<Assignment> &starts,
                                        const SearchOptions &options) {
  return OrderAnnealing(model, options).run(starts);
}

//===- AnnealingPlacer.cpp - Plain simulated annealing ----------------*- C++
//-*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Simulated annealing (Kirkpatrick, Gelatt and Vecchi, Science 220, 1983) on
/// the devices of the groups, in its textbook form: a random group goes to a
/// random device, the temperature falls geometrically. Not tuned: it shows what
/// search without any knowledge of the graph gives.
///
//===----------------------------------------------------------------------===//

#include "Model/Random.h"
#include "Placers/Baselines.h"
#include "Placers/Placers.h"
#include "Schedule/Evaluator.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

using namespace baechi::placement;
using namespace baechi::placement::placers;

namespace {

/// Evaluations, and nodes and tensors that all of them may visit: large graphs
/// get fewer.
constexpr int64_t maxEvaluations = 4000, maxVisits = 40'000'000;
constexpr int64_t minEvaluations = 100;
/// Of the first value: about what a bad move costs, and what nearly none does.
constexpr double hot = 0.05, cold = 0.0001;

class Annealer {
public:
  explicit Annealer(const PlacerContext &context)
      : model(context.grouped),
        maxLoad(context.options.objective == Objective::MaxLoad),
        evaluator(model), home(model.numUnits), resident(model.numDevices, 0),
        device(fillInOrder(model)) {
    for (Unit u = 0; u < model.numUnits; ++u) {
      home[u] = device[model.members[u].front()];
      resident[home[u]] += model.unitResident[u];
      int32_t choices = 0;
      for (int32_t d = 0; d < model.numDevices; ++d)
        choices += model.mayUse(u, d);
      if (choices > 1)
        movable.push_back(u);
    }
  }
  /// Returns the number of evaluations.
  int64_t run();
  const Assignment &best() const { return bestDevice; }

private:
  /// `never` when two devices that must talk cannot.
  int64_t value() {
    return maxLoad ? baechi::placement::maxLoad(model, device)
                   : evaluator.run(home, {}, never);
  }
  void move(Unit u, int32_t d) {
    resident[home[u]] -= model.unitResident[u];
    resident[d] += model.unitResident[u];
    home[u] = d;
    for (int32_t i : model.members[u])
      device[i] = d;
  }

  const Model &model;
  bool maxLoad;
  Evaluator evaluator;
  std::vector<Unit> movable;
  std::vector<int32_t> home;
  std::vector<int64_t> resident;
  Assignment device, bestDevice;
};

int64_t Annealer::run() {
  int64_t evaluations =
      std::clamp(maxVisits / (model.numNodes + model.numTensors + 1),
                 minEvaluations, maxEvaluations);
  int64_t now = value(), bestValue = now;
  bestDevice = device;
  if (movable.empty())
    return 1;
  Random random;
  auto first = static_cast<double>(now == never ? 0 : now);
  for (int64_t k = 1; k < evaluations; ++k) {
    Unit u = movable[random.below(static_cast<int64_t>(movable.size()))];
    int32_t from = home[u], to = random.below(model.numDevices);
    // Only resident bytes are looked at: the rest is left to the repair.
    if (to == from || !model.mayUse(u, to) ||
        (model.unitResident[u] > 0 &&
         resident[to] + model.unitResident[u] > model.deviceMemory(to)))
      continue;
    move(u, to);
    int64_t next = value();
    double done = static_cast<double>(k) / static_cast<double>(evaluations);
    double temperature = first * hot * std::pow(cold / hot, done);
    double worse = static_cast<double>(next) - static_cast<double>(now);
    if (next != never &&
        (worse <= 0 || random.real() < std::exp(-worse / temperature))) {
      now = next;
      if (now < bestValue) {
        bestValue = now;
        bestDevice = device;
      }
    } else {
      move(u, from);
    }
  }
  return evaluations;
}

} // namespace

Proposals
baechi::placement::placers::proposeAnnealing(const PlacerContext &context) {
  Annealer annealer(context);
  int64_t evaluations = annealer.run();
  context.notes.push_back(fmt::format("annealing: {} evaluations on {} groups",
                                      evaluations, context.grouped.numUnits));
  return {{ungrouped(context.coarsening, annealer.best())}, ""};
}

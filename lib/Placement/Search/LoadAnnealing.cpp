//===- LoadAnnealing.cpp - Annealing of the largest load --------*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Search/LoadAnnealing.h"
#include "Schedule/Schedule.h"

#include <algorithm>
#include <cmath>

using namespace baechi::placement;
using namespace baechi::placement::search;

/// Of the norm; a power of two.
static constexpr int exponent = 16;

LoadAnnealing::LoadAnnealing(const LoadGraph &graph, const Machine &machine,
                             double passingShare, Random &random)
    : graph(graph), machine(machine), random(random),
      state(graph, machine, passingShare) {}

double LoadAnnealing::cost(size_t index, int64_t value) const {
  if (index < state.firstBytes()) {
    double x = static_cast<double>(value) / scale;
    double y = x * x;
    for (int p = 2; p < exponent; p *= 2)
      y *= y;
    return y;
  }
  if (index == state.blockedIndex())
    return 4.0 * static_cast<double>(value);
  int64_t limit = machine.devices[index - state.firstBytes()].memory;
  if (value <= limit)
    return 0;
  return 1 + 100 * static_cast<double>(value - limit) /
                 (static_cast<double>(limit) + 1);
}

double LoadAnnealing::allCosts() const {
  double sum = 0;
  auto values = state.values();
  for (size_t k = 0; k < values.size(); ++k)
    sum += cost(k, values[k]);
  return sum;
}

/// What a move would add to the energy.
double LoadAnnealing::costOfMove(int32_t v, int32_t to) {
  visited += graph.degree(v);
  changed.clear();
  state.forEachChange(v, to, [&](size_t index, int64_t ns) {
    if (change[index] == 0)
      changed.push_back(static_cast<int32_t>(index));
    change[index] += ns;
  });
  double sum = 0;
  for (int32_t index : changed) {
    if (change[index] == 0)
      continue;
    int64_t now = state.values()[index];
    sum += cost(index, now + change[index]) - cost(index, now);
    change[index] = 0;
  }
  return sum;
}

int32_t LoadAnnealing::mostLoaded() const {
  auto loads = state.loads();
  return static_cast<int32_t>(
      std::max_element(loads.begin(), loads.begin() + graph.devices) -
      loads.begin());
}

int32_t LoadAnnealing::pickVertex() {
  if (random.oneIn(3)) {
    auto there = state.verticesOn(mostLoaded());
    if (!there.empty())
      return there[random.below(static_cast<int64_t>(there.size()))];
  }
  return random.below(graph.numVertices());
}

/// To a device that it talks to, or to any.
LoadAnnealing::Step LoadAnnealing::pickMove() {
  int32_t v = pickVertex();
  int32_t to = -1;
  if (!random.oneIn(3)) {
    auto sent = graph.produces[v], read = graph.consumes[v];
    auto count = static_cast<int64_t>(sent.size() + read.size());
    if (count > 0) {
      int32_t k = random.below(count);
      if (k < static_cast<int32_t>(read.size())) {
        to = state.deviceOf(graph.producer[read[k]]);
      } else {
        auto users = graph.users[sent[k - static_cast<int32_t>(read.size())]];
        to = state.deviceOf(
            users[random.below(static_cast<int64_t>(users.size()))]);
      }
    }
  }
  if (to < 0 || to == state.deviceOf(v))
    to = random.below(graph.devices);
  if (to == state.deviceOf(v) || !graph.mayUse(v, to))
    return {};
  return {v, to};
}

bool LoadAnnealing::tryMove(double limit) {
  ++visited;
  Step step = pickMove();
  if (step.vertex < 0)
    return false;
  double after = energy + costOfMove(step.vertex, step.to);
  if (after > limit)
    return false;
  state.move(step.vertex, step.to);
  energy = after;
  return true;
}

/// Two vertices change places.
bool LoadAnnealing::trySwap(double limit) {
  ++visited;
  int32_t a = pickVertex(), b = random.below(graph.numVertices());
  int32_t from = state.deviceOf(a), to = state.deviceOf(b);
  if (from == to || !graph.mayUse(a, to) || !graph.mayUse(b, from))
    return false;
  double first = energy + costOfMove(a, to);
  state.move(a, to);
  double after = first + costOfMove(b, from);
  visited += graph.degree(a);
  if (after > limit) {
    state.move(a, from);
    return false;
  }
  state.move(b, from);
  energy = after;
  return true;
}

int64_t LoadAnnealing::run(std::vector<int32_t> &deviceOf,
                           const Schedule &schedule) {
  state.assign(deviceOf);
  change.assign(state.values().size(), 0);
  int64_t best = state.feasible() ? state.maxLoad() : never;
  auto rescale = [&] {
    auto loads = state.loads();
    int64_t most = *std::max_element(loads.begin(), loads.end());
    scale =
        static_cast<double>(std::max<int64_t>(best == never ? most : best, 1));
    energy = allCosts();
  };
  rescale();
  constexpr int checkEvery = 256;
  double temperature = schedule.hot;
  int k = 0;
  for (;;) {
    if (k++ % checkEvery == 0) {
      double done = schedule.progress();
      if (done >= 1)
        break;
      temperature = schedule.hot * std::pow(schedule.cold / schedule.hot, done);
      energy = allCosts();
    }
    double slack = -temperature * std::log(random.real() + 1e-12);
    double limit = energy * std::pow(1 + slack, exponent);
    if (!(random.oneIn(4) ? trySwap(limit) : tryMove(limit)))
      continue;
    if (state.maxLoad() < best && state.feasible()) {
      best = state.maxLoad();
      deviceOf = state.assignment();
      rescale();
    }
  }
  if (best == never)
    deviceOf = state.assignment();
  return best;
}

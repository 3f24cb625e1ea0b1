//===- Surrogate.cpp - A cheap stand-in for the makespan --------*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Search/Surrogate.h"

#include <algorithm>
#include <cmath>
#include <numeric>

using namespace baechi::placement;
using namespace baechi::placement::search;

Surrogate::Surrogate(const UnitTable &units, const Level &level,
                     const Traffic &traffic)
    : clusters(level.members.size()), devices(units.model().numDevices),
      traffic(traffic), load(static_cast<size_t>(clusters) * devices, 0),
      bytes(clusters, 0), allowed(load.size(), 1),
      allWork(std::max(units.allWork(), 1.0)) {
  const Model &model = units.model();
  for (int32_t i = 0; i < model.numNodes; ++i) {
    int32_t c = level.clusterOf[model.unit[i]];
    for (int32_t d = 0; d < devices; ++d)
      load[static_cast<size_t>(c) * devices + d] +=
          static_cast<double>(std::max<int64_t>(model.timeOf(i, d), 0)) /
          allWork;
    bytes[c] += static_cast<double>(model.resident[i]);
  }
  for (Unit u = 0; u < model.numUnits; ++u)
    for (int32_t d = 0; d < devices; ++d)
      allowed[static_cast<size_t>(level.clusterOf[u]) * devices + d] &=
          model.mayUse(u, d);
  for (int32_t d = 0; d < devices; ++d)
    memory.push_back(static_cast<double>(model.deviceMemory(d)) + 1);
  std::vector<double> slowness(devices, 0);
  for (size_t k = 0; k < load.size(); ++k)
    slowness[k % devices] += load[k];
  fastestFirst.resize(devices);
  std::iota(fastestFirst.begin(), fastestFirst.end(), 0);
  std::stable_sort(
      fastestFirst.begin(), fastestFirst.end(),
      [&](int32_t a, int32_t b) { return slowness[a] < slowness[b]; });
  std::vector<std::pair<int32_t, int32_t>> parts;
  for (size_t k = 0; k < traffic.rows().size(); ++k) {
    const auto &row = traffic.rows()[k];
    parts.emplace_back(row.from, static_cast<int32_t>(k));
    for (int32_t to : traffic.targets(row))
      parts.emplace_back(to, static_cast<int32_t>(k));
  }
  rowsOf = makeRows(clusters, parts);
}

std::vector<int32_t> Surrogate::sample(const Weights &weights,
                                       Random &random) const {
  // Sometimes fewer devices: the fastest, or a random few.
  std::vector<int32_t> chosen = fastestFirst;
  if (random.oneIn(2))
    for (int32_t k = 0; k < weights.devices; ++k)
      std::swap(chosen[k], chosen[k + random.below(devices - k)]);
  chosen.resize(weights.devices);

  std::vector<double> busy(devices, 0), link(devices, 0), held(devices, 0);
  std::vector<int32_t> on(clusters);
  double cut = 0;
  std::vector<int32_t> mark(devices, -1);
  int32_t turn = 0;
  auto addRow = [&](int32_t k, double sign) {
    const auto &row = traffic.rows()[k];
    int32_t home = on[row.from];
    double ns = sign * row.ns / allWork;
    mark[home] = ++turn;
    for (int32_t to : traffic.targets(row)) {
      int32_t d = on[to];
      if (mark[d] == turn)
        continue;
      mark[d] = turn;
      link[home] += ns;
      link[d] += ns;
      cut += ns;
    }
  };
  auto place = [&](int32_t c, double sign) {
    busy[on[c]] += sign * load[static_cast<size_t>(c) * devices + on[c]];
    held[on[c]] += sign * bytes[c];
  };
  auto norm = [&](const std::vector<double> &values) {
    double sum = 0;
    for (double v : values)
      sum += weights.norm > 3 ? v * v * v * v : v * v * v;
    sum = std::max(sum, 0.0);
    return weights.norm > 3 ? std::sqrt(std::sqrt(sum)) : std::cbrt(sum);
  };
  auto value = [&] {
    double over = 0;
    for (int32_t d = 0; d < devices; ++d)
      over += std::max(0.0, held[d] / memory[d] - 1);
    return norm(busy) + weights.traffic * norm(link) + weights.cut * cut + over;
  };
  auto mayUse = [&](int32_t c, int32_t d) {
    return allowed[static_cast<size_t>(c) * devices + d] != 0;
  };
  for (int32_t c = 0; c < clusters; ++c) {
    on[c] = chosen[random.below(weights.devices)];
    for (int32_t d = 0; d < devices && !mayUse(c, on[c]); ++d)
      on[c] = d;
    place(c, 1);
  }
  for (size_t k = 0; k < traffic.rows().size(); ++k)
    addRow(static_cast<int32_t>(k), 1);

  auto move = [&](int32_t c, int32_t to) {
    for (int32_t k : rowsOf[c])
      addRow(k, -1);
    place(c, -1);
    on[c] = to;
    place(c, 1);
    for (int32_t k : rowsOf[c])
      addRow(k, 1);
  };
  double current = value(), bestValue = current;
  std::vector<int32_t> best = on;
  constexpr double hot = 0.1, cold = 0.0002;
  double temperature = hot;
  double cooling = std::pow(cold / hot, 1.0 / weights.steps);
  for (int32_t step = 0; step < weights.steps; ++step) {
    temperature *= cooling;
    int32_t c = random.below(clusters), from = on[c];
    int32_t to = chosen[random.below(weights.devices)];
    if (to == from || !mayUse(c, to))
      continue;
    int32_t other = -1;
    if (random.oneIn(3)) {
      other = random.below(clusters);
      if (on[other] != to || !mayUse(other, from))
        other = -1;
    }
    move(c, to);
    if (other >= 0)
      move(other, from);
    double next = value();
    if (next <= current ||
        random.real() < std::exp((current - next) / temperature)) {
      current = next;
      if (next < bestValue) {
        bestValue = next;
        best = on;
      }
      continue;
    }
    if (other >= 0)
      move(other, to);
    move(c, from);
  }
  return best;
}

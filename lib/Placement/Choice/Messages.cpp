//===- Messages.cpp - Bounds by passing messages ----------------*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Choice/Messages.h"

#include <algorithm>

using namespace baechi::placement;
using namespace baechi::placement::choice;

Messages::Messages(const Core &core)
    : core(core), links(core.size()), belief(core.size()) {
  int32_t size = 0;
  size_t most = 0;
  // Where what goes from one node to another lies, by the receiver's list.
  std::vector<std::vector<int32_t>> places(core.size());
  for (size_t i = 0; i < core.size(); ++i) {
    most = std::max(most, core.costs[i].size());
    for (size_t k = 0; k < core.neighbours[i].size(); ++k) {
      places[i].push_back(size);
      size += core.strategies(static_cast<int32_t>(i));
    }
  }
  // Every node's tables come in the order of its neighbours' lists: go through
  // the pairs in one order from both ends.
  std::vector<std::vector<std::pair<int32_t, int32_t>>> byNode(core.size());
  for (size_t i = 0; i < core.size(); ++i)
    for (size_t k = 0; k < core.neighbours[i].size(); ++k)
      byNode[core.neighbours[i][k].node].push_back(
          {static_cast<int32_t>(i), places[i][k]});
  for (size_t i = 0; i < core.size(); ++i)
    for (size_t k = 0; k < core.neighbours[i].size(); ++k) {
      const Neighbour &beside = core.neighbours[i][k];
      auto to = std::lower_bound(byNode[i].begin(), byNode[i].end(),
                                 std::pair<int32_t, int32_t>{beside.node, 0});
      links[i].push_back({beside.node, beside.table, places[i][k], to->second});
      entries += static_cast<uint64_t>(core.strategies(beside.node)) *
                 core.costs[i].size();
    }
  sent.assign(size, 0);
  scratch.resize(most);
  entries /= 2;
}

double Messages::share(int32_t i) const {
  size_t later = 0;
  for (const Link &link : links[i])
    later += isLater(link.node, i);
  size_t most = std::max(later, links[i].size() - later);
  return most > 0 ? 1.0 / static_cast<double>(most) : 1;
}

double Messages::pass(const Costs &costs, Strategies *choice) {
  isForward = !isForward;
  double bound = 0;
  auto count = static_cast<int32_t>(core.size());
  std::vector<double> sums;
  for (int32_t k = 0; k < count; ++k) {
    int32_t i = isForward ? k : count - 1 - k;
    size_t own = costs[i].size();
    std::vector<double> &sum = belief[i];
    sum = costs[i];
    for (const Link &link : links[i])
      for (size_t z = 0; z < own; ++z)
        sum[z] += sent[link.in + z];
    double part = share(i);
    size_t later = 0;
    for (const Link &link : links[i]) {
      if (!isLater(link.node, i))
        continue;
      ++later;
      for (size_t z = 0; z < own; ++z)
        scratch[z] = part * sum[z] - sent[link.in + z];
      const double *row = link.table;
      for (int32_t s = 0; s < core.strategies(link.node); ++s, row += own) {
        double best = scratch[0] + row[0];
        for (size_t z = 1; z < own; ++z) {
          double value = scratch[z] + row[z];
          best = value < best ? value : best;
        }
        sent[link.out + s] = best;
      }
    }
    double rest = 1 - part * static_cast<double>(later);
    if (rest > 1e-12)
      bound += rest * *std::min_element(sum.begin(), sum.end());
    if (!choice)
      continue;
    sums = costs[i];
    for (const Link &link : links[i]) {
      const double *from = isLater(link.node, i)
                               ? &sent[link.in]
                               : link.table + (*choice)[link.node] * own;
      for (size_t z = 0; z < own; ++z)
        sums[z] += from[z];
    }
    (*choice)[i] = static_cast<int32_t>(
        std::min_element(sums.begin(), sums.end()) - sums.begin());
  }
  return bound;
}

void Messages::excess(const Costs &costs, Costs &by) const {
  by.resize(core.size());
  for (size_t i = 0; i < core.size(); ++i) {
    auto node = static_cast<int32_t>(i);
    const std::vector<double> &sum = belief[i];
    size_t own = costs[i].size();
    double part = share(node);
    double least = *std::min_element(sum.begin(), sum.end());
    by[i].assign(own, 0);
    size_t later = 0;
    std::vector<double> best(own);
    for (const Link &link : links[i]) {
      if (!isLater(link.node, node))
        continue;
      ++later;
      std::fill(best.begin(), best.end(), anyForbidden);
      const double *row = link.table;
      for (int32_t s = 0; s < core.strategies(link.node); ++s, row += own)
        for (size_t z = 0; z < own; ++z)
          best[z] = std::min(best[z], row[z] - sent[link.out + s]);
      for (size_t z = 0; z < own; ++z)
        by[i][z] += std::max(0.0, best[z] - sent[link.in + z] + part * sum[z]);
    }
    double rest = std::max(0.0, 1 - part * static_cast<double>(later));
    for (size_t z = 0; z < own; ++z)
      by[i][z] += rest * (sum[z] - least);
  }
}

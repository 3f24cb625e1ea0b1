//===- GreedyMatching.cpp - Favourites along critical paths ---------------===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Lp/PathSolution.h"

#include <algorithm>
#include <cmath>

using namespace baechi::placement::lp;

/// Matches tails and heads in order of what their edges would save on paths
/// that are nearly the longest, and repeats with what the matching makes of
/// the paths; the memory of earlier rounds keeps it from swinging.
std::vector<double>
baechi::placement::lp::greedyMatching(const PathProgram &program,
                                      int32_t rounds) {
  size_t m = program.edges.size();
  std::vector<double> y(m, 0), best, weight(m, 0), head, tail;
  std::vector<int32_t> order;
  std::vector<uint8_t> outTaken, inTaken;
  double bestValue = INFINITY;
  for (int32_t round = 0;; ++round) {
    longestFromSource(program, y, head);
    double value = head[program.sink()];
    if (value < bestValue) {
      bestValue = value;
      best = y;
    }
    if (round == rounds || value <= 0)
      return best;
    longestToSink(program, y, tail);
    double softness = value * 0.02 / (1 + 0.5 * round);
    order.clear();
    for (int32_t e = 0; e < program.numEdges(); ++e) {
      const PathProgram::Edge &edge = program.edges[e];
      if (edge.saving <= 0)
        continue;
      double through = head[edge.from] + edge.length + tail[edge.to];
      if (round > 0)
        through -= edge.saving * y[e];
      double below = std::max(0.0, (value - through) / softness);
      double now = fade(below) * edge.saving;
      weight[e] = round > 0 ? 0.7 * weight[e] + 0.3 * now : now;
      order.push_back(e);
    }
    std::sort(order.begin(), order.end(), [&](int32_t a, int32_t b) {
      return weight[a] != weight[b] ? weight[a] > weight[b] : a < b;
    });
    outTaken.assign(program.numBudgets, 0);
    inTaken.assign(program.numNodes, 0);
    std::fill(y.begin(), y.end(), 0.0);
    for (int32_t e : order) {
      const PathProgram::Edge &edge = program.edges[e];
      if (outTaken[edge.outBudget] || inTaken[edge.to])
        continue;
      outTaken[edge.outBudget] = inTaken[edge.to] = 1;
      y[e] = 1;
    }
  }
}

//===- PathProgram.cpp - The longest path that a matching shortens --------===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Lp/PathProgram.h"

#include <algorithm>
#include <limits>

using namespace baechi::placement::lp;

namespace {

constexpr double unreached = -std::numeric_limits<double>::infinity();

double lengthOf(const PathProgram &program, std::span<const double> y,
                int32_t e) {
  const PathProgram::Edge &edge = program.edges[e];
  return y.empty() ? edge.length : edge.length - edge.saving * y[e];
}

} // namespace

void PathProgram::finish() {
  auto sortedBy = [&](auto key) {
    std::vector<int32_t> first(numNodes + 1, 0);
    for (const Edge &edge : edges)
      ++first[key(edge) + 1];
    for (int32_t v = 0; v < numNodes; ++v)
      first[v + 1] += first[v];
    return first;
  };
  auto from = [](const Edge &edge) { return edge.from; };
  auto to = [](const Edge &edge) { return edge.to; };
  firstOut = sortedBy(from);
  if (!std::is_sorted(
          edges.begin(), edges.end(),
          [](const Edge &a, const Edge &b) { return a.from < b.from; })) {
    std::vector<Edge> sorted(edges.size());
    std::vector<int32_t> next(firstOut.begin(), firstOut.end() - 1);
    for (const Edge &edge : edges)
      sorted[next[edge.from]++] = edge;
    edges = std::move(sorted);
  }
  numBudgets = 0;
  int32_t lastFrom = -1, lastBudget = -1;
  for (Edge &edge : edges) {
    if (edge.saving <= 0) {
      edge.outBudget = -1;
      continue;
    }
    if (edge.from != lastFrom || edge.outBudget != lastBudget) {
      lastFrom = edge.from;
      lastBudget = edge.outBudget;
      ++numBudgets;
    }
    edge.outBudget = numBudgets - 1;
  }
  firstIn = sortedBy(to);
  inEdges.resize(edges.size());
  std::vector<int32_t> next(firstIn.begin(), firstIn.end() - 1);
  for (int32_t e = 0; e < numEdges(); ++e)
    inEdges[next[edges[e].to]++] = e;
}

void baechi::placement::lp::longestFromSource(const PathProgram &program,
                                              std::span<const double> y,
                                              std::vector<double> &distance) {
  distance.assign(program.numNodes, unreached);
  distance[0] = 0;
  for (int32_t e = 0; e < program.numEdges(); ++e) {
    const PathProgram::Edge &edge = program.edges[e];
    distance[edge.to] = std::max(distance[edge.to],
                                 distance[edge.from] + lengthOf(program, y, e));
  }
}

void baechi::placement::lp::longestToSink(const PathProgram &program,
                                          std::span<const double> y,
                                          std::vector<double> &distance) {
  distance.assign(program.numNodes, unreached);
  distance[program.sink()] = 0;
  for (int32_t e = program.numEdges(); e-- > 0;) {
    const PathProgram::Edge &edge = program.edges[e];
    distance[edge.from] = std::max(distance[edge.from],
                                   distance[edge.to] + lengthOf(program, y, e));
  }
}

double baechi::placement::lp::valueOf(const PathProgram &program,
                                      std::span<const double> y) {
  std::vector<double> distance;
  longestFromSource(program, y, distance);
  return distance[program.sink()];
}

void baechi::placement::lp::scaleIntoBudgets(const PathProgram &program,
                                             std::vector<double> &y) {
  std::vector<double> out(program.numBudgets, 0), in(program.numNodes, 0);
  for (int32_t e = 0; e < program.numEdges(); ++e) {
    const PathProgram::Edge &edge = program.edges[e];
    if (edge.saving <= 0)
      continue;
    y[e] = std::max(0.0, y[e]);
    out[edge.outBudget] += y[e];
    in[edge.to] += y[e];
  }
  for (int32_t e = 0; e < program.numEdges(); ++e) {
    const PathProgram::Edge &edge = program.edges[e];
    if (edge.saving > 0)
      y[e] /= std::max({1.0, out[edge.outBudget], in[edge.to]});
  }
}

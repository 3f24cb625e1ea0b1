//===- WaterFilling.cpp - Bounds from one budget at a time ----------------===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Lp/WaterFilling.h"

#include <algorithm>
#include <cmath>

using namespace baechi::placement::lp;

namespace {

/// An end of an edge: the distance with nothing saved, and what may be.
struct Arrival {
  double distance;
  double saving;
};

/// The least value of max_i (distance_i - saving_i y_i) over y_i in [0, 1]
/// with sum y_i <= 1. Edges that reach above a level T need
/// (distance - T) / saving each; the level sinks until one budget is spent.
double waterFill(std::vector<Arrival> &arrivals) {
  double floor = -INFINITY;
  for (const Arrival &a : arrivals)
    floor = std::max(floor, a.distance - a.saving);
  double spent = 0;
  for (const Arrival &a : arrivals)
    if (a.saving > 0 && a.distance > floor)
      spent += (a.distance - floor) / a.saving;
  if (spent <= 1)
    return floor;
  std::erase_if(arrivals, [](const Arrival &a) { return a.saving <= 0; });
  std::sort(arrivals.begin(), arrivals.end(),
            [](const Arrival &a, const Arrival &b) {
              return a.distance > b.distance;
            });
  double heights = 0, slopes = 0, level = arrivals.front().distance;
  for (size_t k = 0; k < arrivals.size(); ++k) {
    heights += arrivals[k].distance / arrivals[k].saving;
    slopes += 1 / arrivals[k].saving;
    level = (heights - 1) / slopes;
    if (k + 1 == arrivals.size() || level >= arrivals[k + 1].distance)
      break;
  }
  return std::max(level, floor);
}

} // namespace

WaterLevels baechi::placement::lp::waterLevels(const PathProgram &program) {
  WaterLevels levels;
  levels.earliest.assign(program.numNodes, 0);
  levels.rest.assign(program.numNodes, 0);
  std::vector<Arrival> arrivals;
  for (int32_t v = 1; v < program.numNodes; ++v) {
    arrivals.clear();
    for (int32_t e : program.in(v)) {
      const PathProgram::Edge &edge = program.edges[e];
      arrivals.push_back(
          {levels.earliest[edge.from] + edge.length, edge.saving});
    }
    if (!arrivals.empty())
      levels.earliest[v] = waterFill(arrivals);
  }
  for (int32_t v = program.numNodes - 1; v-- > 0;) {
    double &rest = levels.rest[v];
    int32_t e = program.firstOut[v], end = program.firstOut[v + 1];
    for (int32_t budget = -1; e < end;) {
      arrivals.clear();
      for (; e < end; ++e) {
        const PathProgram::Edge &edge = program.edges[e];
        double distance = levels.rest[edge.to] + edge.length;
        if (edge.saving <= 0) {
          rest = std::max(rest, distance);
          continue;
        }
        if (!arrivals.empty() && edge.outBudget != budget)
          break;
        budget = edge.outBudget;
        arrivals.push_back({distance, edge.saving});
      }
      if (!arrivals.empty())
        rest = std::max(rest, waterFill(arrivals));
    }
  }
  for (int32_t v = 0; v < program.numNodes; ++v)
    levels.bound = std::max(levels.bound, levels.earliest[v] + levels.rest[v]);
  return levels;
}

namespace {

/// Each edge is shortened as far as its head's level asks for (\p headShare of
/// it) and as its tail's does (the rest); all are scaled into the budgets.
std::vector<double> waterMatching(const PathProgram &program,
                                  const WaterLevels &levels, double headShare) {
  std::vector<double> y(program.edges.size(), 0);
  for (int32_t e = 0; e < program.numEdges(); ++e) {
    const PathProgram::Edge &edge = program.edges[e];
    if (edge.saving <= 0)
      continue;
    double before = levels.earliest[edge.from] + edge.length;
    double after = levels.rest[edge.to] + edge.length;
    auto share = [&](double excess) {
      return std::clamp(excess / edge.saving, 0.0, 1.0);
    };
    y[e] = headShare * share(before - levels.earliest[edge.to]) +
           (1 - headShare) * share(after - levels.rest[edge.from]);
    // An edge with slack gives way to others.
    double slack = levels.bound - (before + levels.rest[edge.to] - edge.saving);
    if (slack > 0)
      y[e] *= fade(3 * slack / levels.bound);
  }
  scaleIntoBudgets(program, y);
  return y;
}

} // namespace

PathSolution baechi::placement::lp::waterSolution(const PathProgram &program,
                                                  const WaterLevels &levels) {
  PathSolution solution;
  solution.lower = levels.bound;
  for (double headShare : {1.0, 0.5, 0.0})
    solution.offer(program, waterMatching(program, levels, headShare));
  return solution;
}

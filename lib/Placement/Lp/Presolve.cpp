//===- Presolve.cpp - What decides itself ---------------------------------===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Lp/Presolve.h"
#include "Lp/WaterFilling.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

using namespace baechi::placement;
using namespace baechi::placement::lp;

PathProgram baechi::placement::lp::pathProgram(const LpProgram &program) {
  auto n = static_cast<int32_t>(program.time.size());
  PathProgram path;
  path.numNodes = n + 2;
  std::vector<uint8_t> hasIn(n, 0), hasOut(n, 0);
  for (const LpProgram::Edge &edge : program.edges)
    hasOut[edge.from] = hasIn[edge.to] = 1;
  for (int32_t i = 0; i < n; ++i) {
    if (!hasIn[i])
      path.edges.push_back({0, i + 1, 0, 0, -1, -1});
    if (!hasOut[i])
      path.edges.push_back({i + 1, n + 1, program.time[i], 0, -1, -1});
  }
  if (n == 0)
    path.edges.push_back({0, 1, 0, 0, -1, -1});
  for (size_t e = 0; e < program.edges.size(); ++e) {
    const LpProgram::Edge &edge = program.edges[e];
    path.edges.push_back({edge.from + 1, edge.to + 1,
                          program.time[edge.from] + edge.transfer,
                          edge.transfer, edge.from, static_cast<int32_t>(e)});
  }
  path.finish();
  return path;
}

LpSolution baechi::placement::lp::toLpSolution(const LpProgram &program,
                                               const PathProgram &path,
                                               const PathSolution &solution,
                                               const std::string &note) {
  LpSolution result;
  result.x.assign(program.edges.size(), 1);
  for (int32_t e = 0; e < path.numEdges(); ++e)
    if (int32_t origin = path.edges[e].origin; origin >= 0)
      result.x[origin] = 1 - solution.y[e];
  result.value = solution.upper;
  result.bound = std::min(solution.lower, solution.upper);
  // The precision at which solvers are compared.
  result.optimal = solution.within(1e-6);
  if (!result.optimal)
    result.note = fmt::format("{}, at most {:.2g} % above the optimum", note,
                              100 * (result.value / result.bound - 1));
  return result;
}

Contraction baechi::placement::lp::contract(const PathProgram &program,
                                            std::span<const uint8_t> keep,
                                            std::span<const double> earliest,
                                            std::span<const double> rest) {
  int32_t n = program.numNodes, last = program.sink();
  std::vector<int32_t> outCount(program.numBudgets, 0), inCount(n, 0);
  std::vector<int32_t> inDegree(n, 0), outDegree(n, 0), onlyIn(n, -1);
  for (int32_t e = 0; e < program.numEdges(); ++e) {
    if (!keep[e])
      continue;
    const PathProgram::Edge &edge = program.edges[e];
    if (edge.saving > 0) {
      ++outCount[edge.outBudget];
      ++inCount[edge.to];
    }
    ++outDegree[edge.from];
    ++inDegree[edge.to];
    onlyIn[edge.to] = e;
  }
  auto isCertain = [&](const PathProgram::Edge &edge) {
    return edge.saving > 0 && outCount[edge.outBudget] == 1 &&
           inCount[edge.to] == 1;
  };
  auto fixedLength = [&](const PathProgram::Edge &edge) {
    return isCertain(edge) ? edge.length - edge.saving : edge.length;
  };

  Contraction result;
  result.node.assign(n, -1);
  result.offset.assign(n, 0);
  result.node[0] = 0;
  int32_t count = 1;
  std::vector<uint8_t> merged(program.edges.size(), 0);
  for (int32_t v = 1; v < last; ++v) {
    if (inDegree[v] == 0 && outDegree[v] == 0)
      continue;
    if (inDegree[v] == 0) {
      result.node[v] = 0;
      result.offset[v] = earliest[v];
      continue;
    }
    const PathProgram::Edge &edge = program.edges[onlyIn[v]];
    if (inDegree[v] == 1 && (edge.saving <= 0 || isCertain(edge))) {
      result.node[v] = result.node[edge.from];
      result.offset[v] = result.offset[edge.from] + fixedLength(edge);
      merged[onlyIn[v]] = 1;
      continue;
    }
    result.node[v] = count++;
  }
  result.node[last] = count++;

  std::vector<double> toSink(count, -INFINITY);
  auto ends = [&](int32_t v, double length) {
    double &longest = toSink[result.node[v]];
    longest = std::max(longest, result.offset[v] + length);
  };
  result.program.numNodes = count;
  auto &edges = result.program.edges;
  for (int32_t e = 0; e < program.numEdges(); ++e) {
    if (!keep[e])
      continue;
    const PathProgram::Edge &edge = program.edges[e];
    bool certain = isCertain(edge);
    if (certain)
      result.certain.push_back(e);
    if (merged[e])
      continue;
    double saving = certain ? 0 : edge.saving;
    if (edge.to == last && saving <= 0)
      ends(edge.from, fixedLength(edge));
    else
      edges.push_back({result.node[edge.from], result.node[edge.to],
                       result.offset[edge.from] + fixedLength(edge), saving,
                       edge.outBudget, e});
  }
  for (int32_t v = 1; v < last; ++v)
    if (inDegree[v] > 0 && outDegree[v] == 0)
      ends(v, rest[v]);
  if (edges.empty())
    toSink[0] = std::max(toSink[0], 0.0);
  for (int32_t v = 0; v < count; ++v)
    if (toSink[v] > -INFINITY)
      edges.push_back({v, count - 1, toSink[v], 0, -1, -1});
  result.program.finish();
  return result;
}

namespace {

/// One round of `tighten`; returns how many edges fewer there are.
int32_t tightenOnce(PathProgram &program, double upper, double &lower) {
  WaterLevels levels = waterLevels(program);
  lower = std::max(lower, levels.bound);
  std::vector<double> head, tail;
  longestFromSource(program, {}, head);
  longestToSink(program, {}, tail);
  int32_t last = program.sink(), dropped = 0;
  // Rounding must not drop an edge of the longest path itself.
  double slackFrom = lower * (1 - 1e-12);
  PathProgram left;
  left.numNodes = program.numNodes;
  for (const PathProgram::Edge &edge : program.edges) {
    // Too short for any longest path, even with nothing saved.
    bool drop = head[edge.from] + edge.length + tail[edge.to] <= slackFrom;
    // Its tail's latest start is early enough for its head's earliest.
    if (!drop && edge.from != 0 && edge.to != last) {
      double latest = std::min(head[edge.from], upper - levels.rest[edge.from]);
      drop = levels.earliest[edge.to] >= latest + edge.length;
    }
    if (drop)
      ++dropped;
    else
      left.edges.push_back(edge);
  }
  if (dropped == 0)
    return 0;
  left.finish();
  // What the dropped edges implied for earliest and latest starts stays.
  WaterLevels weaker = waterLevels(left);
  std::vector<PathProgram::Edge> bounds;
  auto hasIn = [&](int32_t v) { return left.firstIn[v] < left.firstIn[v + 1]; };
  auto hasOut = [&](int32_t v) {
    return left.firstOut[v] < left.firstOut[v + 1];
  };
  double tolerance = 1e-10 * lower;
  for (int32_t v = 1; v < last; ++v) {
    if (!hasIn(v) && !hasOut(v))
      continue;
    if (!hasIn(v) || levels.earliest[v] > weaker.earliest[v] + tolerance)
      bounds.push_back({0, v, levels.earliest[v], 0, -1, -1});
    if (!hasOut(v) || levels.rest[v] > weaker.rest[v] + tolerance)
      bounds.push_back({v, last, levels.rest[v], 0, -1, -1});
  }
  if (left.edges.empty())
    bounds.push_back({0, last, lower, 0, -1, -1});
  // Renumber the nodes that are left; of bounds on one node the longest holds.
  std::vector<int32_t> id(program.numNodes, -1);
  PathProgram result;
  for (int32_t v = 0; v < program.numNodes; ++v)
    if (v == 0 || v == last || hasIn(v) || hasOut(v))
      id[v] = result.numNodes++;
  std::vector<double> fromSource(result.numNodes, -INFINITY);
  std::vector<double> toSink(result.numNodes, -INFINITY);
  auto add = [&](PathProgram::Edge edge) {
    edge.from = id[edge.from];
    edge.to = id[edge.to];
    if (edge.saving <= 0 && edge.to == result.sink())
      toSink[edge.from] = std::max(toSink[edge.from], edge.length);
    else if (edge.saving <= 0 && edge.from == 0)
      fromSource[edge.to] = std::max(fromSource[edge.to], edge.length);
    else
      result.edges.push_back(edge);
  };
  for (const PathProgram::Edge &edge : left.edges)
    add(edge);
  for (const PathProgram::Edge &edge : bounds)
    add(edge);
  for (int32_t v = 0; v < result.numNodes; ++v) {
    if (fromSource[v] > -INFINITY)
      result.edges.push_back({0, v, fromSource[v], 0, -1, -1});
    if (toSink[v] > -INFINITY)
      result.edges.push_back({v, result.sink(), toSink[v], 0, -1, -1});
  }
  result.finish();
  int32_t fewer = program.numEdges() - result.numEdges();
  program = std::move(result);
  return fewer;
}

} // namespace

PathProgram baechi::placement::lp::tighten(const PathProgram &program,
                                           double upper, double &lower) {
  PathProgram result = program;
  for (int32_t e = 0; e < result.numEdges(); ++e)
    result.edges[e].origin = e;
  for (int round = 0; round < 4; ++round) {
    int32_t before = result.numEdges();
    if (tightenOnce(result, upper, lower) < before / 100)
      break;
  }
  return result;
}

std::vector<PathProgram>
baechi::placement::lp::split(const PathProgram &program) {
  std::vector<int32_t> cuts;
  int32_t reach = 0;
  for (int32_t v = 0; v < program.numNodes; ++v) {
    if (reach <= v)
      cuts.push_back(v);
    for (int32_t e = program.firstOut[v]; e < program.firstOut[v + 1]; ++e)
      reach = std::max(reach, program.edges[e].to);
  }
  std::vector<PathProgram> parts;
  for (size_t k = 0; k + 1 < cuts.size(); ++k) {
    PathProgram &part = parts.emplace_back();
    part.numNodes = cuts[k + 1] - cuts[k] + 1;
    for (int32_t e = program.firstOut[cuts[k]];
         e < program.firstOut[cuts[k + 1]]; ++e) {
      PathProgram::Edge edge = program.edges[e];
      edge.from -= cuts[k];
      edge.to -= cuts[k];
      edge.origin = e;
      part.edges.push_back(edge);
    }
    part.finish();
  }
  return parts;
}

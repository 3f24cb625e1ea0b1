//===- TestPrograms.h - Linear programs for tests ---------------*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef BAECHI_UNITTESTS_PLACEMENT_TESTPROGRAMS_H
#define BAECHI_UNITTESTS_PLACEMENT_TESTPROGRAMS_H

#include "Baechi/Placement/Lp/LpSolver.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <random>

namespace baechi::placement::test {

/// The longest path under x.
inline double longestPath(const LpProgram &program,
                          const std::vector<double> &x) {
  std::vector<double> start(program.time.size(), 0);
  double longest = 0;
  for (size_t e = 0; e < program.edges.size(); ++e) {
    const auto &edge = program.edges[e];
    start[edge.to] =
        std::max(start[edge.to], start[edge.from] + program.time[edge.from] +
                                     edge.transfer * x[e]);
  }
  for (size_t i = 0; i < start.size(); ++i)
    longest = std::max(longest, start[i] + program.time[i]);
  return longest;
}

/// By how much x is out of its bounds or its sums are too small.
inline double violation(const LpProgram &program,
                        const std::vector<double> &x) {
  std::vector<double> out(program.time.size(), 0), in(program.time.size(), 0);
  double worst = 0;
  for (size_t e = 0; e < program.edges.size(); ++e) {
    worst = std::max({worst, -x[e], x[e] - 1});
    out[program.edges[e].from] += 1 - x[e];
    in[program.edges[e].to] += 1 - x[e];
  }
  for (size_t i = 0; i < out.size(); ++i)
    worst = std::max({worst, out[i] - 1, in[i] - 1});
  return worst;
}

enum class Kind {
  Any,
  NoTime,     ///< no operator takes time
  Huge,       ///< times near 1e18
  Hubs,       ///< most edges leave the first three nodes
  NoTransfer, ///< nothing to save
  Backbone,   ///< a chain with shortcuts
  Star,       ///< all edges leave one node
  Alike,      ///< all costs are the same
};
constexpr int numKinds = 8;

/// A random program of at most \p most nodes.
inline LpProgram randomProgram(uint32_t seed, Kind kind, int32_t most) {
  std::mt19937 random(seed);
  auto below = [&](int32_t n) {
    return static_cast<int32_t>(random() % static_cast<uint32_t>(n));
  };
  LpProgram program;
  int32_t n = 1 + below(most), window = 1 + below(30), degree = below(5);
  double scale = std::pow(10.0, below(7) - 2);
  for (int32_t i = 0; i < n; ++i) {
    double time = below(4) ? 1 + below(1000) : 0;
    if (kind == Kind::NoTime)
      time = 0;
    if (kind == Kind::Huge)
      time *= 1e15;
    if (kind == Kind::Alike)
      time = 1 + below(3);
    program.time.push_back(time);
  }
  std::map<std::pair<int32_t, int32_t>, double> edges;
  for (int32_t i = 1; i < n; ++i)
    for (int32_t k = below(degree + 1); k > 0; --k) {
      int32_t from = std::max(0, i - 1 - below(window));
      double transfer = below(4) ? scale * (1 + below(1000)) : 0;
      if (kind == Kind::Huge)
        transfer *= 1e12;
      if (kind == Kind::Hubs)
        from = below(i) % 3;
      if (kind == Kind::NoTransfer)
        transfer = 0;
      if (kind == Kind::Alike)
        transfer = scale;
      edges[{from, i}] = transfer;
    }
  if (kind == Kind::Star)
    edges.clear();
  for (int32_t i = 1; i < n; ++i) {
    if (kind == Kind::Star)
      edges[{0, i}] = scale * (1 + below(9));
    if (kind == Kind::Backbone)
      edges[{i - 1, i}] = scale * (1 + below(5));
  }
  for (const auto &[ends, transfer] : edges)
    program.edges.push_back({ends.first, ends.second, transfer});
  return program;
}

} // namespace baechi::placement::test

#endif // BAECHI_UNITTESTS_PLACEMENT_TESTPROGRAMS_H

//===- Favourites.cpp - m-SCT's favourite children --------------*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Lp/Favourites.h"
#include "Baechi/Placement/Lp/NativeSolver.h"

#include <algorithm>
#include <cmath>
#include <tuple>

#include <fmt/format.h>

using namespace baechi::placement;
using namespace baechi::placement::lp;

LpProgram baechi::placement::lp::favouriteProgram(const Model &model) {
  LpProgram program;
  std::vector<int32_t> position(model.numNodes);
  for (int32_t k = 0; k < model.numNodes; ++k)
    position[model.order[k]] = k;
  program.time.reserve(model.numNodes);
  std::vector<std::pair<int32_t, double>> users;
  for (int32_t i : model.order) {
    program.time.push_back(static_cast<double>(model.meanTime(i)));
    users.clear();
    auto [begin, end] = model.tensorsOf(i);
    for (int32_t t = begin; t < end; ++t) {
      auto transfer = static_cast<double>(model.meanTransfer(t));
      for (int32_t user : model.users[t])
        users.emplace_back(position[user], transfer);
    }
    for (int32_t user : model.controlUsers[i])
      users.emplace_back(position[user], 0.0);
    std::sort(users.begin(), users.end());
    int32_t from = position[i];
    auto &edges = program.edges;
    for (const auto &[user, transfer] : users) {
      if (!edges.empty() && edges.back().from == from &&
          edges.back().to == user)
        edges.back().transfer += transfer;
      else
        edges.push_back({from, user, transfer});
    }
  }
  return program;
}

namespace {

/// The longest path through every edge; \p x may be empty (all 1).
std::vector<double> longestThrough(const LpProgram &program,
                                   const std::vector<double> &x) {
  const auto &edges = program.edges;
  const auto &time = program.time;
  std::vector<double> head(time.size(), 0), tail(time), through(edges.size());
  auto length = [&](size_t e) {
    return time[edges[e].from] + edges[e].transfer * (x.empty() ? 1 : x[e]);
  };
  for (size_t e = 0; e < edges.size(); ++e)
    head[edges[e].to] =
        std::max(head[edges[e].to], head[edges[e].from] + length(e));
  for (size_t e = edges.size(); e-- > 0;)
    tail[edges[e].from] =
        std::max(tail[edges[e].from], length(e) + tail[edges[e].to]);
  for (size_t e = 0; e < edges.size(); ++e)
    through[e] = head[edges[e].from] + length(e) + tail[edges[e].to];
  return through;
}

/// A maximal matching of tails and heads over the critical edges, in order of
/// decreasing 1 - x, the longest path with every transfer paid among equals.
/// Thresholds on x would leave symmetric forks without a favourite or give
/// nodes two. Where nothing is critical x says nothing, and a favourite only
/// keeps a device waiting.
std::vector<int32_t> match(const Model &model, const LpProgram &program,
                           const LpSolution &solution) {
  // Rounding x lengthens paths: near the longest counts as critical.
  constexpr double near = 0.97;
  const auto &edges = program.edges;
  std::vector<double> through = longestThrough(program, solution.x);
  std::vector<double> paid = longestThrough(program, {});
  struct Choice {
    int64_t weight;
    double through;
    int32_t edge;
  };
  std::vector<Choice> order;
  for (size_t e = 0; e < edges.size(); ++e) {
    // Rounded, so that the last digits of a solver do not decide.
    auto weight = std::llround((1 - solution.x[e]) * 1000);
    if (weight > 10 && edges[e].transfer > 0 &&
        through[e] >= near * solution.value)
      order.push_back({weight, paid[e], static_cast<int32_t>(e)});
  }
  std::sort(order.begin(), order.end(), [](const Choice &a, const Choice &b) {
    return std::tuple(-a.weight, -a.through, a.edge) <
           std::tuple(-b.weight, -b.through, b.edge);
  });
  std::vector<int32_t> child(model.numNodes, -1);
  std::vector<uint8_t> hasParent(model.numNodes, 0);
  for (const Choice &choice : order) {
    int32_t from = model.order[edges[choice.edge].from];
    int32_t to = model.order[edges[choice.edge].to];
    if (child[from] >= 0 || hasParent[to])
      continue;
    child[from] = to;
    hasParent[to] = 1;
  }
  return child;
}

} // namespace

std::vector<int32_t>
baechi::placement::lp::favouriteChildren(const Model &model,
                                         const LpSolver *solver, double seconds,
                                         std::vector<std::string> &notes) {
  LpProgram program = favouriteProgram(model);
  std::unique_ptr<LpSolver> own;
  if (!solver) {
    own = createNativeSolver();
    solver = own.get();
  }
  LpSolution solution = solver->solve(program, seconds);
  std::string instead;
  if (solution.x.size() != program.edges.size()) {
    instead = "; favourite children are chosen greedily instead";
    std::string why = solution.note;
    solution = createGreedySolver()->solve(program, seconds);
    solution.note = why;
  }
  if (!solution.optimal)
    notes.push_back(
        fmt::format("m-SCT's linear program ({} nodes, {} edges), {}: {}{}",
                    program.time.size(), program.edges.size(), solver->name(),
                    solution.note, instead));
  return match(model, program, solution);
}

//===- Favourites.cpp - m-SCT's favourite children --------------*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Placers/Placers.h"

#include <algorithm>
#include <numeric>

#include <fmt/format.h>

using namespace baechi::placement;

namespace {

/// The program of a model: nodes in topological order, an edge a pair, with
/// the mean times over devices and links.
struct Relaxation {
  LpProgram program;
  std::vector<double> through; ///< per edge: the longest path over it

  explicit Relaxation(const Model &model);
};

Relaxation::Relaxation(const Model &model) {
  std::vector<int32_t> position(model.numNodes);
  for (int32_t k = 0; k < model.numNodes; ++k)
    position[model.order[k]] = k;
  for (int32_t i : model.order) {
    program.time.push_back(static_cast<double>(model.meanTime(i)));
    std::vector<std::pair<int32_t, double>> users;
    auto [begin, end] = model.tensorsOf(i);
    for (int32_t t = begin; t < end; ++t)
      for (int32_t user : model.users[t])
        users.emplace_back(position[user],
                           static_cast<double>(model.meanTransfer(t)));
    for (int32_t user : model.controlUsers[i])
      users.emplace_back(position[user], 0.0);
    std::sort(users.begin(), users.end());
    int32_t from = position[i];
    for (const auto &[user, transfer] : users) {
      auto &edges = program.edges;
      if (!edges.empty() && edges.back().from == from &&
          edges.back().to == user)
        edges.back().transfer += transfer;
      else
        edges.push_back({from, user, transfer});
    }
  }
  std::vector<double> head(program.time.size(), 0), tail(program.time);
  for (const auto &edge : program.edges)
    head[edge.to] =
        std::max(head[edge.to],
                 head[edge.from] + program.time[edge.from] + edge.transfer);
  for (auto edge = program.edges.rbegin(); edge != program.edges.rend(); ++edge)
    tail[edge->from] =
        std::max(tail[edge->from],
                 program.time[edge->from] + edge->transfer + tail[edge->to]);
  for (const auto &edge : program.edges)
    through.push_back(head[edge.from] + program.time[edge.from] +
                      edge.transfer + tail[edge.to]);
}

/// The least value of max_i (base_i + c_i (1 - y_i)) over y_i in [0, 1] with
/// sum y_i <= 1: how early a node can be reached when one budget is shared by
/// its edges. \p arrivals holds (base, c).
double waterFill(std::vector<std::pair<double, double>> &arrivals) {
  double level = 0, full = 0;
  for (const auto &[base, c] : arrivals) {
    level = std::max(level, base);
    full = std::max(full, base + c);
  }
  // Edges that reach above T must be shortened by (base + c - T) / c each; the
  // highest first until the budget is spent.
  std::sort(arrivals.begin(), arrivals.end(), [](const auto &a, const auto &b) {
    return a.first + a.second > b.first + b.second;
  });
  double heights = 0, slopes = 0, best = full;
  for (size_t k = 0; k < arrivals.size(); ++k) {
    auto [base, c] = arrivals[k];
    if (c <= 0)
      break;
    heights += (base + c) / c;
    slopes += 1 / c;
    best = (heights - 1) / slopes;
    if (k + 1 == arrivals.size() ||
        best >= arrivals[k + 1].first + arrivals[k + 1].second)
      break;
  }
  return std::clamp(best, level, full);
}

/// A lower bound of the program's value: the earliest that every node can be
/// reached and left, each with its own edges' budget.
double lowerBound(const LpProgram &program) {
  size_t n = program.time.size();
  std::vector<std::vector<int32_t>> in(n), out(n);
  for (size_t e = 0; e < program.edges.size(); ++e) {
    in[program.edges[e].to].push_back(static_cast<int32_t>(e));
    out[program.edges[e].from].push_back(static_cast<int32_t>(e));
  }
  std::vector<double> earliest(n, 0), rest(n, 0);
  std::vector<std::pair<double, double>> ends;
  double bound = 0;
  for (size_t i = 0; i < n; ++i) {
    ends.clear();
    for (int32_t e : in[i]) {
      const auto &edge = program.edges[e];
      ends.emplace_back(earliest[edge.from] + program.time[edge.from],
                        edge.transfer);
    }
    earliest[i] = ends.empty() ? 0 : waterFill(ends);
  }
  for (size_t i = n; i-- > 0;) {
    ends.clear();
    for (int32_t e : out[i])
      ends.emplace_back(rest[program.edges[e].to], program.edges[e].transfer);
    rest[i] = program.time[i] + (ends.empty() ? 0 : waterFill(ends));
    bound = std::max(bound, earliest[i] + rest[i]);
  }
  return bound;
}

/// The part of the program that needs a solver, exactly: an edge whose longest
/// path stays below a lower bound even with every transfer paid binds nowhere,
/// and the only edge out of its tail and into its head is a favourite.
struct Reduced {
  LpProgram program;
  std::vector<int32_t> edge;    ///< reduced edge -> edge
  std::vector<int32_t> certain; ///< edges that are favourites without a solver
};

Reduced reduce(const Relaxation &relaxation) {
  const LpProgram &full = relaxation.program;
  size_t n = full.time.size();
  double bound = lowerBound(full);
  Reduced reduced;
  std::vector<int32_t> outDegree(n, 0), inDegree(n, 0), binding;
  for (size_t e = 0; e < full.edges.size(); ++e)
    if (relaxation.through[e] > bound) {
      binding.push_back(static_cast<int32_t>(e));
      ++outDegree[full.edges[e].from];
      ++inDegree[full.edges[e].to];
    }
  // Chains become one node; edges are sorted by their tails, which come in
  // topological order, so a chain's first node is settled before the others.
  std::vector<int32_t> head(n);
  std::iota(head.begin(), head.end(), 0);
  std::vector<double> time = full.time;
  std::vector<uint8_t> used(n, 0);
  for (int32_t e : binding) {
    const auto &edge = full.edges[e];
    if (outDegree[edge.from] == 1 && inDegree[edge.to] == 1) {
      head[edge.to] = head[edge.from];
      time[head[edge.to]] += full.time[edge.to];
      reduced.certain.push_back(e);
    } else {
      reduced.edge.push_back(e);
    }
  }
  for (int32_t e : reduced.edge)
    used[head[full.edges[e].from]] = used[head[full.edges[e].to]] = 1;
  // A chain's edges leave from its last node: number it there, so that every
  // edge still leads from a smaller to a larger id.
  std::vector<int32_t> last(n, -1), id(n, -1);
  for (size_t i = 0; i < n; ++i)
    last[head[i]] = static_cast<int32_t>(i);
  for (size_t i = 0; i < n; ++i)
    if (used[head[i]] && last[head[i]] == static_cast<int32_t>(i)) {
      id[head[i]] = static_cast<int32_t>(reduced.program.time.size());
      reduced.program.time.push_back(time[head[i]]);
    }
  for (int32_t e : reduced.edge) {
    const auto &edge = full.edges[e];
    reduced.program.edges.push_back(
        {id[head[edge.from]], id[head[edge.to]], edge.transfer});
  }
  return reduced;
}

/// A maximal matching of tails and heads, the edges with the largest weight
/// first, the longest path over the edge among equals.
std::vector<int32_t> match(const Model &model, const Relaxation &relaxation,
                           const std::vector<double> &weight) {
  const auto &edges = relaxation.program.edges;
  std::vector<int32_t> order;
  for (size_t e = 0; e < edges.size(); ++e)
    if (weight[e] > 0.01 && edges[e].transfer > 0)
      order.push_back(static_cast<int32_t>(e));
  std::sort(order.begin(), order.end(), [&](int32_t a, int32_t b) {
    // Rounded, so that the last digits of a solver do not decide.
    auto key = [&](int32_t e) {
      return std::tuple(-static_cast<int64_t>(weight[e] * 1000 + 0.5),
                        -relaxation.through[e], e);
    };
    return key(a) < key(b);
  });
  std::vector<int32_t> child(model.numNodes, -1);
  std::vector<uint8_t> hasParent(model.numNodes, 0);
  for (int32_t e : order) {
    int32_t from = model.order[edges[e].from], to = model.order[edges[e].to];
    if (child[from] >= 0 || hasParent[to])
      continue;
    child[from] = to;
    hasParent[to] = 1;
  }
  return child;
}

} // namespace

std::vector<int32_t>
baechi::placement::favouriteChildren(const Model &model, const LpSolver *solver,
                                     double seconds,
                                     std::vector<std::string> &notes) {
  Relaxation relaxation(model);
  const auto &edges = relaxation.program.edges;
  if (solver) {
    Reduced reduced = reduce(relaxation);
    LpSolution solution = solver->solve(reduced.program, seconds);
    // Values from a solver that ran out of time would depend on the load.
    bool found = solution.optimal && solution.x.size() == reduced.edge.size();
    if (!found)
      notes.push_back(fmt::format(
          "m-SCT's linear program ({} nodes, {} edges): {}; favourite children "
          "are chosen greedily instead",
          reduced.program.time.size(), reduced.edge.size(), solution.note));
    if (found) {
      // What was left out keeps x = 1.
      std::vector<double> weight(edges.size(), 0);
      for (size_t k = 0; k < reduced.edge.size(); ++k)
        weight[reduced.edge[k]] = 1 - solution.x[k];
      for (int32_t e : reduced.certain)
        weight[e] = 1;
      return match(model, relaxation, weight);
    }
  } else {
    notes.push_back("m-SCT without a linear program's solver: favourite "
                    "children are chosen greedily along the critical path");
  }
  return match(model, relaxation, std::vector<double>(edges.size(), 1.0));
}

//===- Network.cpp - A choice program while it shrinks ----------*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Choice/Network.h"

#include <algorithm>
#include <limits>

using namespace baechi::placement;
using namespace baechi::placement::choice;

namespace {

double toCost(int64_t cost) {
  return cost >= infiniteCost ? forbidden : static_cast<double>(cost);
}

} // namespace

Network::Network(const ChoiceProgram &program) {
  nodes.resize(program.nodes.size());
  for (size_t i = 0; i < nodes.size(); ++i) {
    const ChoiceNode &from = program.nodes[i];
    for (const ChoiceStrategy &strategy : from.strategies)
      nodes[i].cost.push_back(toCost(strategy.cost));
  }
  if (program.usageLimit)
    addMembers(program);
  for (const ChoiceEdge &edge : program.edges) {
    std::vector<double> table(edge.costs.size());
    std::transform(edge.costs.begin(), edge.costs.end(), table.begin(), toCost);
    work += table.size();
    if (edge.first != edge.second) {
      add(edge.first, edge.second, std::move(table));
      continue;
    }
    std::vector<double> &cost = nodes[edge.first].cost;
    for (size_t s = 0; s < cost.size(); ++s)
      cost[s] += table[s * cost.size() + s];
  }
}

/// A slot is a stretch of time in which no node begins or ends.
void Network::addMembers(const ChoiceProgram &program) {
  for (const ChoiceNode &node : program.nodes)
    if (node.begin < node.end) {
      slotTimes.push_back(node.begin);
      slotTimes.push_back(node.end);
    }
  std::sort(slotTimes.begin(), slotTimes.end());
  slotTimes.erase(std::unique(slotTimes.begin(), slotTimes.end()),
                  slotTimes.end());
  auto slotOf = [&](int64_t time) {
    return static_cast<int32_t>(
        std::lower_bound(slotTimes.begin(), slotTimes.end(), time) -
        slotTimes.begin());
  };
  for (size_t i = 0; i < nodes.size(); ++i) {
    const ChoiceNode &from = program.nodes[i];
    if (from.begin >= from.end)
      continue;
    Member member{slotOf(from.begin), slotOf(from.end), {}};
    for (const ChoiceStrategy &strategy : from.strategies)
      member.usage.push_back(static_cast<double>(strategy.usage));
    nodes[i].members.push_back(std::move(member));
  }
  // The last time is an end, after which nothing is alive.
  if (!slotTimes.empty())
    slotTimes.pop_back();
  capacity.assign(slotTimes.size(), static_cast<double>(*program.usageLimit));
}

int32_t Network::find(int32_t a, int32_t b) const {
  if (nodes[a].edges.size() > nodes[b].edges.size())
    std::swap(a, b);
  for (int32_t e : nodes[a].edges)
    if (edges[e].other(a) == b)
      return e;
  return -1;
}

void Network::add(int32_t a, int32_t b, std::vector<double> table) {
  work += table.size();
  int32_t e = find(a, b);
  if (e < 0) {
    e = static_cast<int32_t>(edges.size());
    nodes[a].edges.push_back(e);
    nodes[b].edges.push_back(e);
    edges.push_back({a, b, std::move(table)});
    return;
  }
  std::vector<double> &sum = edges[e].table;
  size_t rows = nodes[a].size(), columns = nodes[b].size();
  bool isSame = edges[e].first == a;
  for (size_t r = 0; r < rows; ++r)
    for (size_t s = 0; s < columns; ++s) {
      double &entry = sum[isSame ? r * columns + s : s * rows + r];
      entry = std::min(forbidden, entry + table[r * columns + s]);
    }
}

void Network::remove(int32_t edge) {
  for (int32_t end : {edges[edge].first, edges[edge].second}) {
    std::vector<int32_t> &list = nodes[end].edges;
    *std::find(list.begin(), list.end(), edge) = list.back();
    list.pop_back();
  }
  edges[edge] = {};
}

void Network::keep(int32_t node, const std::vector<int32_t> &kept) {
  Node &at = nodes[node];
  auto pick = [&](std::vector<double> &values) {
    std::vector<double> left;
    left.reserve(kept.size());
    for (int32_t s : kept)
      left.push_back(values[s]);
    values = std::move(left);
  };
  for (int32_t e : at.edges) {
    Edge &edge = edges[e];
    int32_t other = edge.other(node);
    size_t rows = nodes[edge.first].size(), columns = nodes[edge.second].size();
    std::vector<double> left;
    left.reserve(kept.size() * nodes[other].size());
    if (node == edge.first)
      for (int32_t r : kept)
        left.insert(left.end(), edge.table.begin() + r * columns,
                    edge.table.begin() + (r + 1) * columns);
    else
      for (size_t r = 0; r < rows; ++r)
        for (int32_t s : kept)
          left.push_back(edge.table[r * columns + s]);
    work += left.size();
    edge.table = std::move(left);
  }
  pick(at.cost);
  for (Member &member : at.members)
    pick(member.usage);
  steps.push_back({Step::Kind::Keep, node, -1, kept, {}, {}});
}

/// The table of an edge with a row for each strategy of its second end.
std::vector<double> Network::takeTransposed(int32_t edge) {
  const Edge &at = edges[edge];
  size_t rows = nodes[at.first].size(), columns = nodes[at.second].size();
  std::vector<double> result(at.table.size());
  for (size_t r = 0; r < rows; ++r)
    for (size_t s = 0; s < columns; ++s)
      result[s * rows + r] = at.table[r * columns + s];
  return result;
}

void Network::follow(int32_t node, int32_t by, std::vector<int32_t> map) {
  Node &gone = nodes[node], &stays = nodes[by];
  int32_t between = find(node, by);
  for (size_t r = 0; r < stays.size(); ++r) {
    double pair = between < 0 ? 0 : at(edges[between], by, r, map[r]);
    stays.cost[r] =
        std::min(forbidden, stays.cost[r] + pair + gone.cost[map[r]]);
  }
  if (between >= 0)
    remove(between);
  while (!gone.edges.empty()) {
    int32_t e = gone.edges.back();
    int32_t other = edges[e].other(node);
    std::vector<double> table =
        edges[e].first == node ? std::move(edges[e].table) : takeTransposed(e);
    remove(e);
    size_t columns = nodes[other].size();
    std::vector<double> moved;
    moved.reserve(map.size() * columns);
    for (int32_t r : map)
      moved.insert(moved.end(), table.begin() + r * columns,
                   table.begin() + (r + 1) * columns);
    add(by, other, std::move(moved));
  }
  for (Member &member : gone.members) {
    Member moved{member.begin, member.end, {}};
    for (int32_t r : map)
      moved.usage.push_back(member.usage[r]);
    stays.members.push_back(std::move(moved));
  }
  gone = {};
  gone.isGone = true;
  steps.push_back({Step::Kind::Follow, node, by, std::move(map), {}, {}});
}

void Network::settle(int32_t node) {
  Node &gone = nodes[node];
  constant += gone.cost[0];
  for (const Member &member : gone.members)
    for (int32_t t = member.begin; t < member.end; ++t)
      capacity[t] -= member.usage[0];
  gone = {};
  gone.isGone = true;
  steps.push_back({Step::Kind::Follow, node, node, {0}, {}, {}});
}

void Network::eliminate(int32_t node) {
  Node &gone = nodes[node];
  Step step{Step::Kind::Best, node, -1, {}, gone.cost, {}};
  std::vector<int32_t> others;
  while (!gone.edges.empty()) {
    int32_t e = gone.edges.back();
    Edge edge{node, edges[e].other(node), {}};
    edge.table =
        edges[e].first == node ? std::move(edges[e].table) : takeTransposed(e);
    remove(e);
    step.edges.push_back(std::move(edge));
  }
  const std::vector<double> &cost = step.cost;
  if (step.edges.empty()) {
    constant += *std::min_element(cost.begin(), cost.end());
  } else if (step.edges.size() == 1) {
    const Edge &edge = step.edges[0];
    std::vector<double> &left = nodes[edge.second].cost;
    for (size_t s = 0; s < left.size(); ++s) {
      double best = forbidden;
      for (size_t r = 0; r < cost.size(); ++r)
        best = std::min(best, cost[r] + edge.table[r * left.size() + s]);
      left[s] = std::min(forbidden, left[s] + best);
    }
    work += edge.table.size();
  } else if (step.edges.size() == 2) {
    const Edge &a = step.edges[0], &b = step.edges[1];
    size_t rows = nodes[a.second].size(), columns = nodes[b.second].size();
    std::vector<double> table(rows * columns, forbidden);
    for (size_t k = 0; k < cost.size(); ++k)
      for (size_t r = 0; r < rows; ++r) {
        double own = cost[k] + a.table[k * rows + r];
        if (isForbidden(own))
          continue;
        for (size_t s = 0; s < columns; ++s)
          table[r * columns + s] =
              std::min(table[r * columns + s], own + b.table[k * columns + s]);
      }
    work += cost.size() * table.size();
    add(a.second, b.second, std::move(table));
  }
  gone = {};
  gone.isGone = true;
  steps.push_back(std::move(step));
}

void Network::undo(Choice &choice) const {
  for (auto step = steps.rbegin(); step != steps.rend(); ++step) {
    int32_t &own = choice[step->node];
    if (step->kind == Step::Kind::Keep) {
      own = step->map[own];
    } else if (step->kind == Step::Kind::Follow) {
      own = step->map[choice[step->by]];
    } else {
      double best = std::numeric_limits<double>::infinity();
      for (size_t s = 0; s < step->cost.size(); ++s) {
        double cost = step->cost[s];
        for (const Edge &edge : step->edges) {
          size_t columns = edge.table.size() / step->cost.size();
          cost += edge.table[s * columns + choice[edge.second]];
        }
        if (cost < best) {
          best = cost;
          own = static_cast<int32_t>(s);
        }
      }
    }
  }
}

//===- Core.cpp - What is left of a choice program --------------*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Choice/Core.h"

using namespace baechi::placement;
using namespace baechi::placement::choice;

Core::Core(const Network &network)
    : capacity(network.capacity), constant(network.constant), network(network) {
  std::vector<int32_t> number(network.nodes.size(), -1);
  for (size_t i = 0; i < network.nodes.size(); ++i) {
    const Node &node = network.nodes[i];
    if (node.isGone)
      continue;
    number[i] = static_cast<int32_t>(nodeOf.size());
    nodeOf.push_back(static_cast<int32_t>(i));
    costs.push_back(node.cost);
    members.push_back(node.members);
  }
  alive.resize(capacity.size() / slotsPerBlock + 1);
  for (size_t i = 0; i < members.size(); ++i)
    for (size_t m = 0; m < members[i].size(); ++m) {
      const Member &member = members[i][m];
      int32_t last = (member.end - 1) / slotsPerBlock;
      for (int32_t b = member.begin / slotsPerBlock; b <= last; ++b)
        alive[b].push_back({static_cast<int32_t>(i), static_cast<int32_t>(m)});
    }
  size_t entries = 0;
  for (const Edge &edge : network.edges)
    entries += 2 * edge.table.size();
  tables.reserve(entries); // the neighbours point into it
  neighbours.resize(nodeOf.size());
  for (const Edge &edge : network.edges) {
    if (edge.isGone())
      continue;
    int32_t a = number[edge.first], b = number[edge.second];
    size_t rows = costs[a].size(), columns = costs[b].size();
    neighbours[b].push_back({a, tables.data() + tables.size()});
    tables.insert(tables.end(), edge.table.begin(), edge.table.end());
    neighbours[a].push_back({b, tables.data() + tables.size()});
    for (size_t s = 0; s < columns; ++s)
      for (size_t r = 0; r < rows; ++r)
        tables.push_back(edge.table[r * columns + s]);
  }
}

double Core::cost(const Strategies &choice, const Costs &nodeCosts) const {
  double sum = 0;
  for (size_t i = 0; i < choice.size(); ++i) {
    sum += nodeCosts[i][choice[i]];
    for (const Neighbour &beside : neighbours[i])
      if (beside.node > static_cast<int32_t>(i))
        sum += beside.table[choice[beside.node] * costs[i].size() + choice[i]];
  }
  return sum;
}

std::vector<double> Core::usage(const Strategies &choice) const {
  std::vector<double> bytes(capacity.size() + 1, 0);
  for (size_t i = 0; i < choice.size(); ++i)
    for (const Member &member : members[i]) {
      bytes[member.begin] += member.usage[choice[i]];
      bytes[member.end] -= member.usage[choice[i]];
    }
  for (size_t t = 1; t < bytes.size(); ++t)
    bytes[t] += bytes[t - 1];
  bytes.pop_back();
  return bytes;
}

void Core::beside(int32_t i, const Strategies &choice,
                  std::vector<double> &sums) const {
  size_t count = costs[i].size();
  sums.assign(count, 0);
  for (const Neighbour &neighbour : neighbours[i]) {
    const double *row = neighbour.table + choice[neighbour.node] * count;
    for (size_t s = 0; s < count; ++s)
      sums[s] += row[s];
  }
}

void Core::price(const std::vector<double> &prices, Costs &priced) const {
  std::vector<double> upTo(prices.size() + 1, 0);
  for (size_t t = 0; t < prices.size(); ++t)
    upTo[t + 1] = upTo[t] + prices[t];
  priced = costs;
  for (size_t i = 0; i < priced.size(); ++i)
    for (const Member &member : members[i]) {
      double price = upTo[member.end] - upTo[member.begin];
      if (price <= 0)
        continue;
      for (size_t s = 0; s < priced[i].size(); ++s)
        priced[i][s] += price * member.usage[s];
    }
}

Choice Core::expand(const Strategies &choice) const {
  Choice whole(network.nodes.size(), 0);
  for (size_t i = 0; i < choice.size(); ++i)
    whole[nodeOf[i]] = choice[i];
  network.undo(whole);
  return whole;
}

//===- ChoiceProgram.cpp - Checking and adding up choices -------*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Baechi/Placement/Choice/SolveChoice.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <map>

using namespace baechi::placement;

namespace {

constexpr size_t maxNodes = 10'000'000;
constexpr size_t maxStrategies = 1'000'000;

std::string checkNode(const ChoiceNode &node, size_t i) {
  if (node.begin < 0 || node.end < node.begin)
    return fmt::format("node {}: its interval [{}, {}) must be 0 <= begin <= "
                       "end",
                       i, node.begin, node.end);
  if (node.strategies.empty())
    return fmt::format("node {} has no strategies: give it one", i);
  if (node.strategies.size() > maxStrategies)
    return fmt::format("node {} has {} strategies, and {} are the most", i,
                       node.strategies.size(), maxStrategies);
  for (size_t s = 0; s < node.strategies.size(); ++s) {
    const ChoiceStrategy &strategy = node.strategies[s];
    if (strategy.cost < 0)
      return fmt::format("node {}: the cost {} of strategy {} must be 0 or "
                         "more",
                         i, strategy.cost, s);
    if (strategy.usage < 0)
      return fmt::format("node {}: the usage {} of strategy {} must be 0 or "
                         "more",
                         i, strategy.usage, s);
  }
  return "";
}

std::string checkEdge(const ChoiceProgram &program, size_t e) {
  const ChoiceEdge &edge = program.edges[e];
  for (int32_t end : {edge.first, edge.second})
    if (end < 0 || static_cast<size_t>(end) >= program.nodes.size())
      return fmt::format("edge {} names node {}, but there are {} nodes", e,
                         end, program.nodes.size());
  size_t rows = program.nodes[edge.first].strategies.size();
  size_t columns = program.nodes[edge.second].strategies.size();
  if (edge.costs.size() != rows * columns)
    return fmt::format("edge {} from node {} to node {} has {} costs: it needs "
                       "{} * {}",
                       e, edge.first, edge.second, edge.costs.size(), rows,
                       columns);
  auto negative = std::find_if(edge.costs.begin(), edge.costs.end(),
                               [](int64_t cost) { return cost < 0; });
  if (negative != edge.costs.end())
    return fmt::format("edge {}: the cost {} at {} must be 0 or more", e,
                       *negative, negative - edge.costs.begin());
  return "";
}

} // namespace

std::string
baechi::placement::checkChoiceProgram(const ChoiceProgram &program) {
  if (program.nodes.size() > maxNodes)
    return fmt::format("there are {} nodes, and {} are the most",
                       program.nodes.size(), maxNodes);
  if (program.usageLimit && *program.usageLimit < 0)
    return fmt::format("the usage limit {} must be 0 or more",
                       *program.usageLimit);
  std::string error;
  for (size_t i = 0; i < program.nodes.size() && error.empty(); ++i)
    error = checkNode(program.nodes[i], i);
  for (size_t e = 0; e < program.edges.size() && error.empty(); ++e)
    error = checkEdge(program, e);
  return error;
}

std::string baechi::placement::checkChoice(const ChoiceProgram &program,
                                           const Choice &choice) {
  if (choice.size() != program.nodes.size())
    return fmt::format("it chooses for {} nodes, but there are {}",
                       choice.size(), program.nodes.size());
  for (size_t i = 0; i < choice.size(); ++i) {
    size_t count = program.nodes[i].strategies.size();
    if (choice[i] < 0 || static_cast<size_t>(choice[i]) >= count)
      return fmt::format("node {}: strategy {} is chosen, but there are {}", i,
                         choice[i], count);
  }
  return "";
}

ChoiceValue baechi::placement::evaluateChoice(const ChoiceProgram &program,
                                              const Choice &choice) {
  ChoiceValue value;
  auto add = [&](int64_t cost) {
    value.cost += cost;
    value.isForbidden |= cost >= infiniteCost;
  };
  // What the usage rises by at a time.
  std::map<int64_t, WideSum> changes;
  for (size_t i = 0; i < choice.size(); ++i) {
    const ChoiceNode &node = program.nodes[i];
    const ChoiceStrategy &strategy = node.strategies[choice[i]];
    add(strategy.cost);
    if (node.begin < node.end) {
      changes[node.begin] += strategy.usage;
      changes[node.end] -= strategy.usage;
    }
  }
  for (const ChoiceEdge &edge : program.edges) {
    size_t columns = program.nodes[edge.second].strategies.size();
    add(edge.costs[choice[edge.first] * columns + choice[edge.second]]);
  }
  WideSum usage = 0;
  for (const auto &[time, change] : changes) {
    usage += change;
    if (usage > value.peak) {
      value.peak = usage;
      value.peakTime = time;
    }
  }
  value.fits = !program.usageLimit || value.peak <= *program.usageLimit;
  return value;
}

std::string baechi::placement::formatWideSum(WideSum value) {
  bool negative = value < 0;
  std::string digits;
  do {
    auto digit = static_cast<int>(value % 10);
    digits += static_cast<char>('0' + (negative ? -digit : digit));
    value /= 10;
  } while (value != 0);
  if (negative)
    digits += '-';
  std::reverse(digits.begin(), digits.end());
  return digits;
}

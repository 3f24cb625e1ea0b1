//===- Slots.cpp - The times at which memory can run out --------*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Choice/Network.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

using namespace baechi::placement;
using namespace baechi::placement::choice;

namespace {

/// Joins members of the same slots; what all strategies hold goes off the
/// capacity, and members that hold no more than that are left out.
void normalize(Network &network, Node &node, std::vector<double> &base) {
  std::map<std::pair<int32_t, int32_t>, std::vector<double>> joined;
  for (Member &member : node.members) {
    if (member.begin >= member.end)
      continue;
    std::vector<double> &sum = joined[{member.begin, member.end}];
    sum.resize(node.size(), 0);
    for (size_t s = 0; s < sum.size(); ++s)
      sum[s] += member.usage[s];
    network.work += sum.size();
  }
  node.members.clear();
  for (auto &[slots, usage] : joined) {
    double least = *std::min_element(usage.begin(), usage.end());
    base[slots.first] += least;
    base[slots.second] -= least;
    bool differs = false;
    for (double &bytes : usage)
      differs |= (bytes -= least) > 0;
    if (differs)
      node.members.push_back({slots.first, slots.second, std::move(usage)});
  }
}

/// Drops strategies that hold more than some slot has.
Refusal dropTooLarge(Network &network, int32_t i) {
  Node &node = network.nodes[i];
  std::vector<double> least(node.members.size());
  std::vector<char> fits(node.size(), 1);
  for (const Member &member : node.members) {
    double capacity = *std::min_element(network.capacity.begin() + member.begin,
                                        network.capacity.begin() + member.end);
    for (size_t s = 0; s < node.size(); ++s)
      fits[s] &= member.usage[s] <= capacity;
  }
  std::vector<int32_t> kept;
  for (size_t s = 0; s < node.size(); ++s)
    if (fits[s])
      kept.push_back(static_cast<int32_t>(s));
  if (kept.empty())
    return fmt::format(
        "every strategy of node {} exceeds the usage limit, with "
        "the least that the others hold",
        i);
  if (kept.size() < node.size())
    network.keep(i, kept);
  return "";
}

/// Which slots may be full when no other one is: those where something has just
/// begun and something ends next, or where there is less room than around.
std::vector<char> needed(const Network &network) {
  size_t slots = network.capacity.size();
  std::vector<double> most(slots + 1, 0);
  std::vector<char> begins(slots + 1, 0), ends(slots + 1, 0);
  for (const Node &node : network.nodes)
    for (const Member &member : node.members) {
      double bytes =
          *std::max_element(member.usage.begin(), member.usage.end());
      most[member.begin] += bytes;
      most[member.end] -= bytes;
      begins[member.begin] = 1;
      ends[member.end] = 1;
    }
  std::vector<char> isNeeded(slots, 0);
  double sum = 0;
  // Of the slots since the last end, the last one that is not implied.
  int64_t candidate = -1;
  for (size_t t = 0; t < slots; ++t) {
    sum += most[t];
    if (ends[t])
      candidate = -1;
    // All that is alive in the candidate is alive here, too.
    if (candidate >= 0 && network.capacity[t] <= network.capacity[candidate])
      isNeeded[candidate] = 0;
    // And here no more than there, if nothing begins.
    bool isImplied = candidate >= 0 && !begins[t] && isNeeded[candidate] &&
                     network.capacity[t] >= network.capacity[candidate];
    isNeeded[t] = !isImplied && sum > network.capacity[t];
    if (isNeeded[t])
      candidate = static_cast<int64_t>(t);
  }
  // After an end nothing new is alive until something begins.
  candidate = -1;
  for (size_t t = 0; t < slots; ++t) {
    if (begins[t])
      candidate = -1;
    if (candidate >= 0 && isNeeded[t] &&
        network.capacity[t] >= network.capacity[candidate])
      isNeeded[t] = 0;
    if (isNeeded[t])
      candidate = static_cast<int64_t>(t);
  }
  return isNeeded;
}

void renumber(Network &network, const std::vector<char> &isNeeded) {
  std::vector<int32_t> number(isNeeded.size() + 1, 0);
  size_t left = 0;
  for (size_t t = 0; t < isNeeded.size(); ++t) {
    number[t] = static_cast<int32_t>(left);
    if (!isNeeded[t])
      continue;
    network.capacity[left] = network.capacity[t];
    network.slotTimes[left++] = network.slotTimes[t];
  }
  number[isNeeded.size()] = static_cast<int32_t>(left);
  network.capacity.resize(left);
  network.slotTimes.resize(left);
  for (Node &node : network.nodes) {
    for (Member &member : node.members) {
      member.begin = number[member.begin];
      member.end = number[member.end];
    }
    std::erase_if(node.members, [](const Member &member) {
      return member.begin >= member.end;
    });
  }
}

} // namespace

Refusal baechi::placement::choice::tightenSlots(Network &network) {
  size_t slots = network.capacity.size();
  if (slots == 0)
    return "";
  std::vector<double> base(slots + 1, 0);
  for (Node &node : network.nodes)
    normalize(network, node, base);
  double sum = 0;
  for (size_t t = 0; t < slots; ++t) {
    sum += base[t];
    network.capacity[t] -= sum;
    if (network.capacity[t] < 0)
      return fmt::format("at time {} the least that all nodes can hold exceeds "
                         "the usage limit by {:.0f} bytes",
                         network.slotTimes[t], -network.capacity[t]);
  }
  for (size_t i = 0; i < network.nodes.size(); ++i)
    if (!network.nodes[i].members.empty())
      if (Refusal refusal = dropTooLarge(network, static_cast<int32_t>(i));
          !refusal.empty())
        return refusal;
  renumber(network, needed(network));
  return "";
}

Refusal baechi::placement::choice::shrink(Network &network) {
  size_t changed = 1;
  for (int round = 0; changed > 0 && round < 8; ++round) {
    size_t steps = network.steps.size();
    if (Refusal refusal = dropInconsistent(network); !refusal.empty())
      return refusal;
    changed = dropSeparable(network);
    changed += mergeFunctional(network);
    size_t slots = network.capacity.size();
    if (Refusal refusal = tightenSlots(network); !refusal.empty())
      return refusal;
    changed += slots - network.capacity.size();
    changed += dropDominated(network);
    changed += eliminateFree(network);
    changed += network.steps.size() - steps;
  }
  return "";
}

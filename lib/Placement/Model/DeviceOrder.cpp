//===- DeviceOrder.cpp - Devices regardless of their numbers ----*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Model/DeviceOrder.h"

#include <algorithm>
#include <numeric>
#include <tuple>
#include <unordered_map>

using namespace baechi::placement;

/// Equal numbers for equal keys, in the order of the keys.
template <typename Key>
static std::vector<int32_t> ranks(const std::vector<Key> &keys) {
  std::vector<Key> sorted = keys;
  std::sort(sorted.begin(), sorted.end());
  sorted.erase(std::unique(sorted.begin(), sorted.end()), sorted.end());
  std::vector<int32_t> rank;
  for (const Key &key : keys)
    rank.push_back(static_cast<int32_t>(
        std::lower_bound(sorted.begin(), sorted.end(), key) - sorted.begin()));
  return rank;
}

/// What tells devices apart but for their links.
static std::vector<int32_t> ownColours(const Problem &problem) {
  const auto &devices = problem.machine.devices;
  std::unordered_map<std::string, size_t> numberOf;
  for (size_t d = 0; d < devices.size(); ++d)
    numberOf[devices[d].name] = d;
  std::vector<std::vector<int32_t>> pinned(devices.size());
  for (size_t i = 0; i < problem.graph.ops.size(); ++i)
    if (const auto &pin = problem.graph.ops[i].pin)
      pinned[numberOf.at(*pin)].push_back(static_cast<int32_t>(i));
  std::vector<std::tuple<std::string, int64_t, std::vector<int32_t>>> keys;
  for (size_t d = 0; d < devices.size(); ++d)
    keys.emplace_back(devices[d].kind, -devices[d].memory,
                      std::move(pinned[d]));
  return ranks(keys);
}

std::vector<int32_t> baechi::placement::deviceOrder(const Problem &problem) {
  const Machine &machine = problem.machine;
  auto count = static_cast<int32_t>(machine.devices.size());
  if (machine.nodes) { // Nodes are in order: they keep it.
    std::vector<int32_t> same(count);
    std::iota(same.begin(), same.end(), 0);
    return same;
  }
  std::vector<int32_t> colour = ownColours(problem);
  auto numColours = [&] {
    return *std::max_element(colour.begin(), colour.end()) + 1;
  };
  using End =
      std::tuple<int32_t, int64_t, int64_t, bool, int64_t, int64_t, bool>;
  for (int32_t before = 0; before < numColours() && before < count;) {
    before = numColours();
    std::vector<std::pair<int32_t, std::vector<End>>> keys(count);
    for (int32_t d = 0; d < count; ++d) {
      keys[d].first = colour[d];
      for (int32_t e = 0; e < count; ++e) {
        if (e == d)
          continue;
        Link none{-1, -1};
        Link out = machine.link(d, e).value_or(none);
        Link in = machine.link(e, d).value_or(none);
        keys[d].second.emplace_back(colour[e], out.latencyNs, out.bytesPerUs,
                                    out.lends, in.latencyNs, in.bytesPerUs,
                                    in.lends);
      }
      std::sort(keys[d].second.begin(), keys[d].second.end());
    }
    colour = ranks(keys);
  }
  std::vector<int32_t> sorted(count), order(count);
  std::iota(sorted.begin(), sorted.end(), 0);
  std::stable_sort(sorted.begin(), sorted.end(),
                   [&](int32_t a, int32_t b) { return colour[a] < colour[b]; });
  // Colours begin with the kind.
  std::unordered_map<std::string, std::vector<int32_t>> ofKind;
  for (auto it = sorted.rbegin(); it != sorted.rend(); ++it)
    ofKind[machine.devices[*it].kind].push_back(*it);
  for (int32_t k = 0; k < count; ++k) {
    std::vector<int32_t> &left = ofKind[machine.devices[k].kind];
    order[k] = left.back();
    left.pop_back();
  }
  return order;
}

Machine baechi::placement::reorder(const Machine &machine,
                                   const std::vector<int32_t> &order) {
  Machine result = machine;
  size_t count = order.size();
  result.devices.resize(count);
  if (!machine.nodes)
    result.links.assign(count * count, std::nullopt);
  for (size_t a = 0; a < count; ++a) {
    result.devices[a] = machine.devices[order[a]];
    for (size_t b = 0; b < count && !machine.nodes; ++b)
      result.links[a * count + b] = machine.link(order[a], order[b]);
  }
  return result;
}

void baechi::placement::renumber(Placement &placement,
                                 const std::vector<int32_t> &numberOf) {
  for (int32_t &d : placement.device)
    d = numberOf[d];
  for (Transfer &transfer : placement.transfers) {
    transfer.from = numberOf[transfer.from];
    transfer.to = numberOf[transfer.to];
  }
}

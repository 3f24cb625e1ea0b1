//===- Reach.cpp - The best plan on some of the devices ---------*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Nodes/Reach.h"

#include <algorithm>
#include <bit>
#include <map>

using namespace baechi::placement;
using namespace baechi::placement::nodes;

namespace {

/// Operators and edges that are looked at, in all, for up to `usualDevices`:
/// seconds. For more, up to so many times as much.
constexpr int64_t proposalCost = 3'500'000, searchCost = 3'000'000;
constexpr int32_t usualDevices = 64, mostTimes = 4;
/// The search takes no smaller steps than this part of the whole.
constexpr int64_t smallStep = 10'000;
/// All numbers of nodes up to this one are reaches.
constexpr int32_t fewNodes = 8;

int64_t effort(int32_t devices) {
  return std::clamp(devices / usualDevices, 1, mostTimes);
}

} // namespace

std::vector<int32_t> nodes::reachesOf(const NodeShape &nodes) {
  std::vector<int32_t> found;
  for (int32_t count = nodes.nodes; count >= 1; --count)
    if (count == nodes.nodes || count <= fewNodes ||
        std::has_single_bit(static_cast<uint32_t>(count)))
      found.push_back(count * nodes.devicesPerNode);
  for (int32_t part = nodes.devicesPerNode - 1; part >= 1; --part)
    if (nodes.devicesPerNode % part == 0)
      found.push_back(part);
  return found;
}

int64_t nodes::costOfProposals(int32_t devices) {
  return proposalCost * effort(devices);
}

int64_t nodes::costOfSearch(int32_t devices) {
  return searchCost * effort(devices);
}

void Reach::propose(int64_t most, std::set<std::string> &notes) {
  const int64_t usual = costOfProposals(devices);
  const int64_t until = proposer.spent() + std::min(most, usual);
  std::vector<Proposal *> proposals = proposer.run(devices, notes);
  std::stable_sort(
      proposals.begin(), proposals.end(),
      [](const Proposal *a, const Proposal *b) { return a->bound < b->bound; });
  for (Proposal *each : proposals) {
    if (each->bound >= best.ns)
      break;
    bool isKnown = each->ns != never || each->above >= best.ns - 1;
    each->isSkipped = !isKnown && (proposer.spent() > until || isCancelled());
    isCutShort |= each->isSkipped && most < usual;
    if (each->isSkipped)
      continue;
    const int64_t before = best.ns;
    consider(*each);
    if (best.ns < before)
      start = each;
  }
}

void Reach::search(int64_t most) {
  const int64_t usual = costOfSearch(devices);
  const int64_t until = proposer.spent() + std::min(most, usual);
  if (options.progress)
    options.progress("search");
  improve(until);
  isCutShort |= proposer.spent() > until && most < usual;
}

void Reach::consider(Proposal &each, int64_t least) {
  int64_t cutoff = best.ns == never ? never : best.ns - least;
  if (each.ns == never && each.above < cutoff) {
    ++looked;
    each.ns = each.setting->evaluate(each.layout, cutoff);
    if (each.ns == never)
      each.above = cutoff;
  }
  if (each.ns == never || each.ns > cutoff)
    return;
  candidates.push_back({each.name, true, each.ns});
  best = each;
}

/// Ways of like operators, and borders of stages, one after the other, as
/// long as anything is better.
void Reach::improve(int64_t until) {
  Setting &setting = *best.setting;
  // Operators that are alike in all but their place in the model.
  std::map<std::vector<int64_t>, std::vector<int32_t>> alike;
  for (size_t op = 0; op < setting.likes.size(); ++op) {
    if (setting.likes[op] == 0 || setting.replica.alternatives.of[op].empty())
      continue;
    const Operator &of = setting.replica.graph.ops[op];
    std::vector<int64_t> key = {of.backward, of.part.has_value(), of.exchange};
    for (const auto &[kind, ns] : of.timeNs)
      key.push_back(ns);
    for (const Output &output : of.outputs)
      key.push_back(output.bytes);
    for (const Alternative &way : setting.replica.alternatives.of[op])
      key.push_back(static_cast<int64_t>(way.pieces.size()));
    alike[key].push_back(static_cast<int32_t>(op));
  }
  for (bool better = true; better;) {
    better = false;
    for (const auto &[key, ops] : alike) {
      const auto &ways = setting.replica.alternatives.of[ops.front()];
      for (int32_t way = -1; way < std::ssize(ways); ++way) {
        if (proposer.spent() > until || isCancelled())
          return;
        if (way >= 0 && std::ssize(ways[way].pieces) > best.layout.lanes)
          continue;
        Proposal next = best;
        for (size_t op = 0; op < setting.likes.size(); ++op)
          if (std::binary_search(ops.begin(), ops.end(),
                                 setting.replica.first[op]))
            next.layout.ways[op] = way;
        better |= tryNext(next);
      }
    }
    for (size_t border = 1; border < best.layout.cuts.size(); ++border)
      for (int32_t step : {-1, 1}) {
        if (proposer.spent() > until || isCancelled())
          return;
        Proposal next = best;
        auto &cuts = next.layout.cuts;
        cuts[border] += step;
        int32_t end = border + 1 < cuts.size() ? cuts[border + 1]
                                               : setting.chain.numLinks;
        if (cuts[border] <= cuts[border - 1] || cuts[border] >= end)
          continue;
        better |= tryNext(next);
      }
  }
}

bool Reach::tryNext(Proposal &next) {
  if (next.layout.ways == best.layout.ways &&
      next.layout.cuts == best.layout.cuts)
    return false;
  if (next.setting->lowerBound(next.layout) >= best.ns)
    return false;
  next.name = nameOf(next, "searched");
  next.ns = never;
  next.above = -1;
  int64_t before = best.ns;
  consider(next, std::max<int64_t>(1, best.ns / smallStep));
  return best.ns < before;
}

//===- ReplayedLinks.cpp - What transfers occupy ----------------*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Schedule/ReplayedLinks.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

using namespace baechi::placement;

ReplayedLinks::ReplayedLinks(const Machine &machine)
    : machine(machine),
      numDevices(static_cast<int32_t>(machine.devices.size())),
      numCards(machine.nodes ? machine.nodes->numCards : 0),
      oneSide(machine.linkModel == LinkModel::Sequential) {
  if (machine.linkModel == LinkModel::Parallel) {
    for (const Device &from : machine.devices)
      for (const Device &to : machine.devices)
        resources.push_back({"the link " + from.name + "->" + to.name, {}});
  } else {
    bool duplex = machine.linkModel == LinkModel::Duplex;
    for (const Device &device : machine.devices)
      resources.push_back(
          {(duplex ? "the outgoing side of " : "the copy engine of ") +
               device.name,
           {}});
    for (const Device &device : machine.devices)
      resources.push_back({"the incoming side of " + device.name, {}});
  }
  firstCard = resources.size();
  for (const char *side :
       {oneSide ? "" : "the outgoing side of ", "the incoming side of "})
    for (int32_t card = 0; card < numCards; ++card)
      resources.push_back({fmt::format("{}network card {}", side, card), {}});
}

void ReplayedLinks::occupy(int32_t from, int32_t to, const Span &span) {
  if (numCards > 0 && machine.linkModel != LinkModel::Unlimited &&
      machine.nodes->node[from] != machine.nodes->node[to]) {
    const auto &card = machine.nodes->card;
    resources[firstCard + card[from]].spans.push_back(span);
    if (!oneSide || card[to] != card[from])
      resources[firstCard + card[to] + (oneSide ? 0 : numCards)]
          .spans.push_back(span);
  }
  int32_t sender = machine.sideOf(from), receiver = machine.sideOf(to);
  switch (machine.linkModel) {
  case LinkModel::Unlimited:
    break;
  case LinkModel::Parallel:
    resources[static_cast<size_t>(from) * numDevices + to].spans.push_back(
        span);
    break;
  case LinkModel::Duplex:
    resources[sender].spans.push_back(span);
    resources[numDevices + receiver].spans.push_back(span);
    break;
  case LinkModel::Sequential:
    resources[sender].spans.push_back(span);
    if (receiver != sender)
      resources[receiver].spans.push_back(span);
    break;
  }
}

std::vector<ReplayedLinks::Resource> ReplayedLinks::byName() && {
  std::sort(
      resources.begin(), resources.end(),
      [](const Resource &a, const Resource &b) { return a.name < b.name; });
  return std::move(resources);
}

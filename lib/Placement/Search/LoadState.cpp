//===- LoadState.cpp - Loads kept up to date move by move -------*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Search/LoadState.h"
#include "Schedule/Schedule.h"

#include <algorithm>

using namespace baechi::placement;
using namespace baechi::placement::search;

static size_t countLoads(const Machine &machine) {
  size_t devices = machine.devices.size();
  if (machine.stagedThrough)
    return devices;
  switch (machine.linkModel) {
  case LinkModel::Unlimited:
    return devices;
  case LinkModel::Parallel:
    return devices + devices * devices;
  case LinkModel::Duplex:
    return 3 * devices;
  case LinkModel::Sequential:
    return 2 * devices;
  }
  return devices;
}

LoadState::LoadState(const LoadGraph &graph, const Machine &machine,
                     double passingShare)
    : graph(&graph), devices(graph.devices), numLoads(countLoads(machine)),
      linkModel(machine.linkModel), stage(machine.stage()) {
  for (int32_t d = 0; d < devices; ++d) {
    isStage.push_back(machine.isStage(d));
    limit.push_back(machine.devices[d].memory);
  }
  auto share = [&](int64_t bytes) {
    return passingShare >= 1 ? bytes
                             : static_cast<int64_t>(static_cast<double>(bytes) *
                                                    passingShare);
  };
  for (int32_t v = 0; v < graph.numVertices(); ++v)
    held.push_back(graph.resident[v] + share(graph.passing[v]));
  for (int64_t bytes : graph.copy)
    copy.push_back(share(bytes));
}

void LoadState::assign(std::span<const int32_t> deviceOf) {
  device.assign(deviceOf.begin(), deviceOf.end());
  readersOn.assign(static_cast<size_t>(graph->numNets()) * devices, 0);
  remoteOf.assign(graph->numNets(), 0);
  value.assign(numLoads + devices + 1, 0);
  onDevice.assign(devices, {});
  slot.resize(device.size());
  auto add = [&](size_t index, int64_t change) { value[index] += change; };
  for (int32_t v = 0; v < graph->numVertices(); ++v) {
    int32_t d = device[v];
    slot[v] = static_cast<int32_t>(onDevice[d].size());
    onDevice[d].push_back(v);
    add(d, graph->timeOf(v, d));
    add(numLoads + d, held[v]);
  }
  for (int32_t net = 0; net < graph->numNets(); ++net) {
    int32_t home = device[graph->producer[net]];
    for (int32_t user : graph->users[net])
      if (readers(net, device[user])++ == 0 && device[user] != home) {
        ++remoteOf[net];
        if (!graph->lacksLinks)
          changeTransfer(net, home, device[user], 1, add);
      }
    if (graph->lacksLinks)
      changeTransfers(
          net, home, [&](int32_t d) { return readers(net, d) > 0; }, 1, add);
    if (stage >= 0 && remoteOf[net] > 0)
      add(home, sendNs(net, home));
  }
}

void LoadState::move(int32_t v, int32_t to) {
  int32_t from = device[v];
  if (from == to)
    return;
  forEachChange(v, to,
                [&](size_t index, int64_t change) { value[index] += change; });
  for (int32_t net : graph->consumes[v]) {
    int32_t home = device[graph->producer[net]];
    if (--readers(net, from) == 0 && from != home)
      --remoteOf[net];
    if (readers(net, to)++ == 0 && to != home)
      ++remoteOf[net];
  }
  for (int32_t net : graph->produces[v])
    remoteOf[net] += (readers(net, from) > 0) - (readers(net, to) > 0);
  device[v] = to;
  std::vector<int32_t> &left = onDevice[from];
  slot[left.back()] = slot[v];
  left[slot[v]] = left.back();
  left.pop_back();
  slot[v] = static_cast<int32_t>(onDevice[to].size());
  onDevice[to].push_back(v);
}

int64_t LoadState::maxLoad() const {
  if (value[blockedIndex()] > 0)
    return never;
  auto all = loads();
  return *std::max_element(all.begin(), all.end());
}

bool LoadState::feasible() const {
  for (int32_t d = 0; d < devices; ++d)
    if (bytes()[d] > limit[d])
      return false;
  return value[blockedIndex()] == 0;
}

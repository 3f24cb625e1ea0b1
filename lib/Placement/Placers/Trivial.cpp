//===- Trivial.cpp - One device, and devices in turn ------------*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Model/DeviceClasses.h"
#include "Placers/Baselines.h"

#include <algorithm>

using namespace baechi::placement;
using namespace baechi::placement::placers;

Proposals
baechi::placement::placers::proposeSingle(const PlacerContext &context) {
  const Model &model = context.model;
  const auto &devices = context.problem.machine.devices;
  Proposals result;
  std::vector<int32_t> tried;
  for (int32_t d = 0; d < model.numDevices; ++d) {
    bool all = true;
    for (Unit u = 0; u < model.numUnits && all; ++u)
      all = model.mayUse(u, d);
    bool isNew = std::none_of(tried.begin(), tried.end(), [&](int32_t e) {
      return devices[e].kind == devices[d].kind &&
             devices[e].memory == devices[d].memory;
    });
    if (!all || !isNew)
      continue;
    tried.push_back(d);
    result.list.push_back({devices[d].name, Assignment(model.numNodes, d)});
  }
  return result;
}

Proposals
baechi::placement::placers::proposeMostlySingle(const PlacerContext &context) {
  const Model &model = context.model;
  // Where all can run everything this is `single`, which is not repaired: of
  // large graphs only where it was asked for.
  constexpr int32_t fewUnits = 4000;
  bool isAsked =
      context.options.placer == "mostly-single" || model.numUnits <= fewUnits;
  std::vector<int64_t> time(
      static_cast<size_t>(model.numUnits) * model.numDevices, 0);
  auto timeOf = [&](Unit u, int32_t d) -> int64_t & {
    return time[static_cast<size_t>(u) * model.numDevices + d];
  };
  for (int32_t i = 0; i < model.numNodes; ++i)
    for (int32_t d = 0; d < model.numDevices; ++d)
      if (model.mayUse(model.unit[i], d))
        timeOf(model.unit[i], d) += model.timeOf(i, d);
  Proposals result;
  for (const DeviceClass &kind : deviceClasses(model)) {
    int32_t most = kind.front();
    std::vector<int32_t> home(model.numUnits, most);
    bool all = true;
    for (Unit u = 0; u < model.numUnits; ++u) {
      if (model.mayUse(u, most))
        continue;
      all = false;
      int32_t best = -1;
      for (int32_t d = 0; d < model.numDevices; ++d)
        if (model.mayUse(u, d) && (best < 0 || timeOf(u, d) < timeOf(u, best)))
          best = d;
      home[u] = best;
    }
    if (all && !isAsked)
      continue;
    Assignment device;
    for (int32_t i = 0; i < model.numNodes; ++i)
      device.push_back(home[model.unit[i]]);
    result.list.push_back({context.problem.machine.devices[most].name, device});
  }
  return result;
}

Proposals
baechi::placement::placers::proposeRoundRobin(const PlacerContext &context) {
  const Model &model = context.grouped;
  std::vector<int32_t> home(model.numUnits, -1);
  int32_t next = 0;
  for (int32_t i : model.order) {
    int32_t &d = home[model.unit[i]];
    if (d >= 0)
      continue;
    d = next;
    while (!model.mayUse(model.unit[i], d))
      d = (d + 1) % model.numDevices;
    next = (next + 1) % model.numDevices;
  }
  return {{ungrouped(context.coarsening, perNode(model, home))}, ""};
}

int64_t baechi::placement::placers::followOperands(const Graph &graph,
                                                   const Model &model,
                                                   std::vector<int32_t> &home) {
  std::vector<int32_t> first(model.numNodes, -1);
  for (const Edge &edge : graph.edges)
    if (edge.output >= 0 && first[edge.to] < 0)
      first[edge.to] = edge.from;
  std::vector<uint8_t> given(model.numUnits);
  for (Unit u = 0; u < model.numUnits; ++u)
    given[u] = home[u] >= 0;
  for (int32_t i : model.order)
    if (int32_t &d = home[model.unit[i]]; d < 0 && first[i] >= 0)
      d = home[model.unit[first[i]]];
  for (auto i = model.order.rbegin(); i != model.order.rend(); ++i)
    model.forEachUser(*i, [&](int32_t user) {
      if (int32_t &d = home[model.unit[*i]]; d < 0)
        d = home[model.unit[user]];
    });
  int64_t moved = 0;
  for (Unit u = 0; u < model.numUnits; ++u) {
    if (home[u] >= 0 && model.mayUse(u, home[u]))
      continue;
    moved += given[u] ? static_cast<int64_t>(model.members[u].size()) : 0;
    for (home[u] = 0; !model.mayUse(u, home[u]);)
      ++home[u];
  }
  return moved;
}

Assignment
baechi::placement::placers::perNode(const Model &model,
                                    const std::vector<int32_t> &home) {
  Assignment device(model.numNodes);
  for (int32_t i = 0; i < model.numNodes; ++i)
    device[i] = home[model.unit[i]];
  return device;
}

//===- LoadGraph.cpp - What makes the loads of devices ----------*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Model/LoadGraph.h"

#include <algorithm>
#include <map>
#include <numeric>

using namespace baechi::placement;

static std::vector<int32_t> everyUnit(const Model &model) {
  std::vector<int32_t> vertexOf(model.numUnits);
  std::iota(vertexOf.begin(), vertexOf.end(), 0);
  return vertexOf;
}

LoadGraph::LoadGraph(const Model &model)
    : LoadGraph(model, everyUnit(model), model.numUnits) {}

LoadGraph::LoadGraph(const Model &model, std::span<const int32_t> vertexOf,
                     int32_t count)
    : devices(model.numDevices), classes(model.numClasses),
      lacksLinks(model.lacksLinks), linkClass(model.linkClass),
      hops(model.hops) {
  addVertices(model, vertexOf, count);
  addNets(model, vertexOf, count);
}

void LoadGraph::addVertices(const Model &model,
                            std::span<const int32_t> vertexOf, int32_t count) {
  time.assign(static_cast<size_t>(count) * devices, 0);
  allowed.assign(time.size(), 1);
  resident.assign(count, 0);
  passing.assign(count, 0);
  for (Unit u = 0; u < model.numUnits; ++u) {
    size_t row = static_cast<size_t>(vertexOf[u]) * devices;
    for (int32_t d = 0; d < devices; ++d)
      if (!model.mayUse(u, d))
        allowed[row + d] = 0;
  }
  for (int32_t i = 0; i < model.numNodes; ++i) {
    int32_t v = vertexOf[model.unit[i]];
    for (int32_t d = 0; d < devices; ++d)
      if (mayUse(v, d))
        time[static_cast<size_t>(v) * devices + d] += model.timeOf(i, d);
    resident[v] += model.resident[i];
    passing[v] += model.scratch[i];
    auto [begin, end] = model.tensorsOf(i);
    for (int32_t t = begin; t < end; ++t)
      passing[v] += model.memory[t];
  }
}

void LoadGraph::addNets(const Model &model, std::span<const int32_t> vertexOf,
                        int32_t count) {
  // (producer, users...) -> net
  std::map<std::vector<int32_t>, int32_t> nets;
  std::vector<int32_t> key;
  std::vector<std::pair<int32_t, int32_t>> sends, reads, readBy;
  auto netOf = [&](int32_t from) {
    std::sort(key.begin() + 1, key.end());
    key.erase(std::unique(key.begin() + 1, key.end()), key.end());
    auto [it, isNew] = nets.try_emplace(key, numNets());
    if (isNew) {
      producer.push_back(from);
      copy.push_back(0);
      signals.push_back(0);
      transfer.resize(transfer.size() + classes, 0);
      sends.emplace_back(from, it->second);
      for (size_t k = 1; k < key.size(); ++k) {
        reads.emplace_back(key[k], it->second);
        readBy.emplace_back(it->second, key[k]);
      }
    }
    return it->second;
  };
  for (int32_t t = 0; t < model.numTensors; ++t) {
    int32_t from = vertexOf[model.unit[model.producer[t]]];
    key.assign(1, from);
    for (int32_t user : model.users[t])
      if (int32_t to = vertexOf[model.unit[user]]; to != from)
        key.push_back(to);
    if (key.size() == 1)
      continue;
    int32_t net = netOf(from);
    copy[net] += model.copy[t];
    for (int32_t c = 0; c < classes; ++c)
      transfer[static_cast<size_t>(net) * classes + c] +=
          model.classTransfer(t, c);
  }
  // A control edge moves nothing, but its ends must be able to talk.
  for (int32_t i = 0; i < model.numNodes && model.lacksLinks; ++i) {
    int32_t from = vertexOf[model.unit[i]];
    key.assign(1, from);
    for (int32_t user : model.controlUsers[i])
      if (int32_t to = vertexOf[model.unit[user]]; to != from)
        key.push_back(to);
    if (key.size() > 1)
      signals[netOf(from)] = 1;
  }
  produces = makeRows(count, sends);
  consumes = makeRows(count, reads);
  users = makeRows(numNets(), readBy);
}

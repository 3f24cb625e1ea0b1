//===- Coarsen.cpp - Models of fewer, larger nodes --------------*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Grouping/Coarsen.h"

#include <algorithm>
#include <numeric>

using namespace baechi::placement;
using namespace baechi::placement::grouping;

DisjointSets::DisjointSets(int32_t size) : parent(size) {
  std::iota(parent.begin(), parent.end(), 0);
}

int32_t DisjointSets::find(int32_t id) {
  while (parent[id] != id) {
    parent[id] = parent[parent[id]];
    id = parent[id];
  }
  return id;
}

int32_t DisjointSets::join(int32_t a, int32_t b) {
  a = find(a);
  b = find(b);
  auto [low, high] = std::minmax(a, b);
  parent[high] = low;
  return low;
}

std::vector<int32_t> DisjointSets::number(int32_t &count) {
  std::vector<int32_t> ids(parent.size(), -1);
  count = 0;
  for (size_t i = 0; i < parent.size(); ++i) {
    int32_t root = find(static_cast<int32_t>(i));
    if (ids[root] < 0)
      ids[root] = count++;
    ids[i] = ids[root];
  }
  return ids;
}

Coarsening Coarsening::identity(const Model &model) {
  Coarsening result;
  result.numNodes = model.numNodes;
  result.numUnits = model.numUnits;
  result.node.resize(model.numNodes);
  result.unit.resize(model.numUnits);
  std::iota(result.node.begin(), result.node.end(), 0);
  std::iota(result.unit.begin(), result.unit.end(), 0);
  return result;
}

Model baechi::placement::grouping::coarsen(const Model &fine,
                                           const Coarsening &coarsening) {
  const std::vector<int32_t> &into = coarsening.node;
  int32_t devices = fine.numDevices;
  Model coarse;
  coarse.machine = fine.machine;
  coarse.numDevices = devices;
  coarse.kindOf = fine.kindOf;
  coarse.numKinds = fine.numKinds;
  coarse.numNodes = coarsening.numNodes;
  coarse.numUnits = coarsening.numUnits;
  coarse.kindTime.assign(static_cast<size_t>(coarse.numNodes) * fine.numKinds,
                         0);
  coarse.scratch.assign(coarse.numNodes, 0);
  coarse.resident.assign(coarse.numNodes, 0);
  coarse.keepsOutputs.assign(coarse.numNodes, 0);
  coarse.unit.assign(coarse.numNodes, 0);
  coarse.allowed.assign(static_cast<size_t>(coarse.numUnits) * devices, 1);

  for (Unit u = 0; u < fine.numUnits; ++u)
    for (int32_t d = 0; d < devices; ++d)
      if (!fine.mayUse(u, d))
        coarse.allowed[static_cast<size_t>(coarsening.unit[u]) * devices + d] =
            0;

  // Which fine tensors leave their node.
  std::vector<std::pair<int32_t, int32_t>> leaving; // (coarse node, tensor)
  for (int32_t i = 0; i < fine.numNodes; ++i) {
    int32_t n = into[i];
    coarse.unit[n] = coarsening.unit[fine.unit[i]];
    coarse.resident[n] += fine.resident[i];
    for (int32_t k = 0; k < fine.numKinds; ++k) {
      int64_t &sum =
          coarse.kindTime[static_cast<size_t>(n) * fine.numKinds + k];
      int64_t ns = fine.kindTime[static_cast<size_t>(i) * fine.numKinds + k];
      sum = sum < 0 || ns < 0 ? -1 : sum + ns;
    }
    int64_t inner = fine.scratch[i];
    auto [begin, end] = fine.tensorsOf(i);
    for (int32_t t = begin; t < end; ++t) {
      auto users = fine.users[t];
      if (std::any_of(users.begin(), users.end(),
                      [&](int32_t user) { return into[user] != n; }))
        leaving.emplace_back(n, t);
      else if (!fine.keepsOutputs[i])
        inner += fine.memory[t];
      if (fine.keepsOutputs[i])
        coarse.resident[n] += fine.memory[t];
    }
    coarse.scratch[n] = std::max(coarse.scratch[n], inner);
  }
  std::sort(leaving.begin(), leaving.end());
  coarse.firstTensor.assign(coarse.numNodes + 1, 0);
  std::vector<std::pair<int32_t, int32_t>> reads, waits;
  for (const auto &[n, t] : leaving) {
    auto id = static_cast<int32_t>(coarse.producer.size());
    ++coarse.firstTensor[n + 1];
    coarse.producer.push_back(n);
    coarse.bytes.push_back(fine.bytes[t]);
    coarse.copy.push_back(fine.copy[t]);
    coarse.memory.push_back(
        fine.keepsOutputs[fine.producer[t]] ? 0 : fine.memory[t]);
    for (int32_t user : fine.users[t])
      if (into[user] != n)
        reads.emplace_back(into[user], id);
  }
  std::partial_sum(coarse.firstTensor.begin(), coarse.firstTensor.end(),
                   coarse.firstTensor.begin());
  coarse.numTensors = static_cast<int32_t>(coarse.producer.size());
  for (int32_t i = 0; i < fine.numNodes; ++i)
    for (int32_t user : fine.controlUsers[i])
      if (into[user] != into[i])
        waits.emplace_back(into[user], into[i]);
  coarse.operands = makeRows(coarse.numNodes, reads);
  coarse.users = inverse(coarse.operands, coarse.numTensors);
  coarse.controlSources = makeRows(coarse.numNodes, waits);
  coarse.controlUsers = inverse(coarse.controlSources, coarse.numNodes);
  coarse.finish();
  return coarse;
}

Assignment baechi::placement::grouping::expand(const Coarsening &coarsening,
                                               const Assignment &coarse) {
  Assignment fine(coarsening.node.size());
  for (size_t i = 0; i < fine.size(); ++i)
    fine[i] = coarse[coarsening.node[i]];
  return fine;
}

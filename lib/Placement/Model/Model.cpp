//===- Model.cpp - The problem in flat arrays -------------------*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Model/Model.h"
#include "Model/Support.h"

#include <algorithm>
#include <map>
#include <unordered_map>

using namespace baechi::placement;

Rows baechi::placement::makeRows(
    int32_t numRows, std::vector<std::pair<int32_t, int32_t>> pairs) {
  std::sort(pairs.begin(), pairs.end());
  pairs.erase(std::unique(pairs.begin(), pairs.end()), pairs.end());
  Rows rows;
  rows.begin.assign(numRows + 1, 0);
  rows.items.reserve(pairs.size());
  for (const auto &[row, item] : pairs) {
    ++rows.begin[row + 1];
    rows.items.push_back(item);
  }
  for (int32_t row = 0; row < numRows; ++row)
    rows.begin[row + 1] += rows.begin[row];
  return rows;
}

Model::Model(const Problem &problem)
    : machine(&problem.machine),
      numNodes(static_cast<int32_t>(problem.graph.ops.size())),
      numDevices(static_cast<int32_t>(problem.machine.devices.size())) {
  const auto &ops = problem.graph.ops;
  std::map<std::string, int32_t> deviceIndex;
  for (int32_t d = 0; d < numDevices; ++d)
    deviceIndex.emplace(machine->devices[d].name, d);
  std::unordered_map<std::string, Unit> groups;
  firstTensor.push_back(0);
  for (int32_t i = 0; i < numNodes; ++i) {
    const Operator &op = ops[i];
    scratch.push_back(op.scratch);
    resident.push_back(op.resident);
    keepsOutputs.push_back(op.result);
    for (const Output &output : op.outputs) {
      producer.push_back(i);
      bytes.push_back(output.bytes);
      memory.push_back(output.memory);
      copy.push_back(output.copy);
    }
    firstTensor.push_back(static_cast<int32_t>(producer.size()));
    Unit id = numUnits;
    if (op.group)
      id = groups.try_emplace(*op.group, numUnits).first->second;
    if (id == numUnits) {
      ++numUnits;
      allowed.resize(static_cast<size_t>(numUnits) * numDevices, 1);
    }
    unit.push_back(id);
    for (int32_t d = 0; d < numDevices; ++d) {
      auto ns = timeOn(op, machine->devices[d].kind);
      time.push_back(ns.value_or(-1));
      if (!ns || (op.pin && deviceIndex.at(*op.pin) != d))
        allowed[static_cast<size_t>(id) * numDevices + d] = 0;
    }
  }
  numTensors = static_cast<int32_t>(producer.size());
  std::vector<std::pair<int32_t, int32_t>> reads, readBy, waits, waitedBy;
  for (const Edge &edge : problem.graph.edges) {
    if (edge.output < 0) {
      waits.emplace_back(edge.to, edge.from);
      waitedBy.emplace_back(edge.from, edge.to);
    } else {
      reads.emplace_back(edge.to, firstTensor[edge.from] + edge.output);
      readBy.emplace_back(firstTensor[edge.from] + edge.output, edge.to);
    }
  }
  operands = makeRows(numNodes, std::move(reads));
  users = makeRows(numTensors, std::move(readBy));
  controlSources = makeRows(numNodes, std::move(waits));
  controlUsers = makeRows(numNodes, std::move(waitedBy));
  finish();
  finishLinks();
}

void Model::finish() {
  std::vector<std::pair<int32_t, int32_t>> pairs;
  unitResident.assign(numUnits, 0);
  for (int32_t i = 0; i < numNodes; ++i) {
    pairs.emplace_back(unit[i], i);
    unitResident[unit[i]] += resident[i];
  }
  members = makeRows(numUnits, std::move(pairs));

  // Kahn's algorithm with a stack: an operator comes right after the last of
  // its operands, which keeps neighbours close and few tensors alive.
  std::vector<int32_t> waiting(numNodes, 0), stack;
  for (int32_t i = 0; i < numNodes; ++i)
    forEachUser(i, [&](int32_t user) { ++waiting[user]; });
  for (int32_t i = numNodes; i-- > 0;)
    if (waiting[i] == 0)
      stack.push_back(i);
  order.clear();
  order.reserve(numNodes);
  while (!stack.empty()) {
    int32_t i = stack.back();
    stack.pop_back();
    order.push_back(i);
    size_t mark = stack.size();
    forEachUser(i, [&](int32_t user) {
      if (--waiting[user] == 0)
        stack.push_back(user);
    });
    std::reverse(stack.begin() + static_cast<ptrdiff_t>(mark), stack.end());
  }
}

void Model::finishLinks() {
  std::map<std::pair<int64_t, int64_t>, int32_t> classes;
  std::vector<Link> links;
  linkClass.assign(static_cast<size_t>(numDevices) * numDevices, -1);
  for (int32_t a = 0; a < numDevices; ++a)
    for (int32_t b = 0; b < numDevices; ++b) {
      const auto &link = machine->link(a, b);
      if (a == b || !link)
        continue;
      auto [it, isNew] =
          classes.try_emplace({link->latencyNs, link->bytesPerUs},
                              static_cast<int32_t>(links.size()));
      if (isNew)
        links.push_back(*link);
      linkClass[a * numDevices + b] = it->second;
    }
  numClasses = static_cast<int32_t>(links.size());
  for (const Link &link : links)
    classLatency.push_back(link.latencyNs);
  classTransfer.reserve(static_cast<size_t>(numTensors) * numClasses);
  for (int32_t t = 0; t < numTensors; ++t)
    for (const Link &link : links)
      classTransfer.push_back(link.transferNs(bytes[t]));
}

bool Model::pinned(Unit u) const {
  return std::count(allowed.begin() + static_cast<ptrdiff_t>(u) * numDevices,
                    allowed.begin() +
                        static_cast<ptrdiff_t>(u + 1) * numDevices,
                    1) == 1;
}

int64_t Model::minTime(int32_t node) const {
  int64_t best = -1;
  for (int32_t d = 0; d < numDevices; ++d)
    if (mayUse(unit[node], d) && (best < 0 || timeOf(node, d) < best))
      best = timeOf(node, d);
  return std::max<int64_t>(best, 0);
}

int64_t Model::meanTime(int32_t node) const {
  int64_t sum = 0, count = 0;
  for (int32_t d = 0; d < numDevices; ++d)
    if (mayUse(unit[node], d)) {
      sum += timeOf(node, d);
      ++count;
    }
  return count ? sum / count : 0;
}

int64_t Model::meanTransfer(int32_t tensor) const {
  int64_t sum = 0;
  for (int32_t c = 0; c < numClasses; ++c)
    sum += classTransfer[static_cast<size_t>(tensor) * numClasses + c];
  return numClasses ? sum / numClasses : 0;
}

//===- Model.cpp - The problem in flat arrays -------------------*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Model/Model.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <string_view>
#include <unordered_map>

using namespace baechi::placement;

Rows baechi::placement::makeRows(
    int32_t numRows, const std::vector<std::pair<int32_t, int32_t>> &pairs) {
  Rows rows;
  rows.begin.assign(static_cast<size_t>(numRows) + 1, 0);
  rows.items.resize(pairs.size());
  for (const auto &[row, item] : pairs)
    ++rows.begin[row + 1];
  std::partial_sum(rows.begin.begin(), rows.begin.end(), rows.begin.begin());
  std::vector<int32_t> fill(rows.begin.begin(), rows.begin.end() - 1);
  for (const auto &[row, item] : pairs)
    rows.items[fill[row]++] = item;
  // Sorted row by row; what is left of each moves up.
  auto end = rows.items.begin();
  for (int32_t row = 0; row < numRows; ++row) {
    auto first = rows.items.begin() + rows.begin[row];
    auto last = rows.items.begin() + fill[row];
    std::sort(first, last);
    rows.begin[row] = static_cast<int32_t>(end - rows.items.begin());
    end = std::unique_copy(first, last, end);
  }
  rows.items.erase(end, rows.items.end());
  rows.begin[numRows] = static_cast<int32_t>(rows.items.size());
  return rows;
}

Rows baechi::placement::inverse(const Rows &rows, int32_t numItems) {
  Rows result;
  result.begin.assign(static_cast<size_t>(numItems) + 1, 0);
  result.items.resize(rows.items.size());
  for (int32_t item : rows.items)
    ++result.begin[item + 1];
  std::partial_sum(result.begin.begin(), result.begin.end(),
                   result.begin.begin());
  std::vector<int32_t> fill(result.begin.begin(), result.begin.end() - 1);
  for (int32_t row = 0; row < rows.size(); ++row)
    for (int32_t item : rows[row])
      result.items[fill[item]++] = row;
  return result;
}

Model::Model(const Problem &problem)
    : machine(&problem.machine),
      numNodes(static_cast<int32_t>(problem.graph.ops.size())),
      numDevices(static_cast<int32_t>(problem.machine.devices.size())) {
  const auto &ops = problem.graph.ops;
  std::map<std::string, int32_t> deviceIndex;
  for (int32_t d = 0; d < numDevices; ++d)
    deviceIndex.emplace(machine->devices[d].name, d);
  std::map<std::string_view, int32_t> kindIndex;
  for (const Device &device : machine->devices) {
    auto [it, isNew] = kindIndex.try_emplace(device.kind, numKinds);
    numKinds += isNew;
    kindOf.push_back(it->second);
  }
  std::vector<const std::string *> kinds(numKinds);
  for (const Device &device : machine->devices)
    kinds[kindIndex[device.kind]] = &device.kind;
  std::unordered_map<std::string_view, Unit> groups;
  groups.reserve(numNodes);
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
    bool everywhere = !op.pin;
    for (const std::string *kind : kinds) {
      kindTime.push_back(timeOn(op, *kind).value_or(-1));
      everywhere &= kindTime.back() >= 0;
    }
    int32_t pin = op.pin ? deviceIndex.at(*op.pin) : -1;
    for (int32_t d = 0; d < numDevices && !everywhere; ++d)
      if (timeOf(i, d) < 0 || (op.pin && pin != d))
        allowed[static_cast<size_t>(id) * numDevices + d] = 0;
  }
  numTensors = static_cast<int32_t>(producer.size());
  std::vector<std::pair<int32_t, int32_t>> reads, waits;
  reads.reserve(problem.graph.edges.size());
  for (const Edge &edge : problem.graph.edges)
    if (edge.output < 0)
      waits.emplace_back(edge.to, edge.from);
    else
      reads.emplace_back(edge.to, firstTensor[edge.from] + edge.output);
  operands = makeRows(numNodes, reads);
  users = inverse(operands, numTensors);
  controlSources = makeRows(numNodes, waits);
  controlUsers = inverse(controlSources, numNodes);
  finish();
}

void Model::finish() {
  finishUnits();
  finishOrder();
  finishTimes();
  finishLinks();
  finishRoutes();
}

void Model::finishUnits() {
  std::vector<std::pair<int32_t, int32_t>> pairs;
  pairs.reserve(numNodes);
  unitResident.assign(numUnits, 0);
  for (int32_t i = 0; i < numNodes; ++i) {
    pairs.emplace_back(unit[i], i);
    unitResident[unit[i]] += resident[i];
  }
  members = makeRows(numUnits, pairs);
}

/// Kahn's algorithm with a stack: an operator comes right after the last of
/// its operands, which keeps neighbours close and few tensors alive.
void Model::finishOrder() {
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

void Model::finishTimes() {
  shortestTime.assign(numNodes, 0);
  averageTime.assign(numNodes, 0);
  for (int32_t i = 0; i < numNodes; ++i) {
    __int128 sum = 0;
    int64_t count = 0, shortest = -1;
    for (int32_t d = 0; d < numDevices; ++d) {
      if (!mayUse(unit[i], d))
        continue;
      int64_t ns = timeOf(i, d);
      shortest = shortest < 0 ? ns : std::min(shortest, ns);
      sum += ns;
      ++count;
    }
    shortestTime[i] = std::max<int64_t>(shortest, 0);
    averageTime[i] = count ? static_cast<int64_t>(sum / count) : 0;
  }
}

void Model::finishLinks() {
  std::map<std::tuple<int64_t, int64_t, bool>, int32_t> index;
  classes.clear();
  linkClass.assign(static_cast<size_t>(numDevices) * numDevices, -1);
  for (int32_t a = 0; a < numDevices; ++a)
    for (int32_t b = 0; b < numDevices; ++b) {
      const auto &link = machine->link(a, b);
      if (a == b || !link)
        continue;
      auto [it, isNew] =
          index.try_emplace({link->latencyNs, link->bytesPerUs, link->lends},
                            static_cast<int32_t>(classes.size()));
      if (isNew)
        classes.push_back(*link);
      linkClass[a * numDevices + b] = it->second;
    }
  numClasses = static_cast<int32_t>(classes.size());
  // Divisions are slow, but tables for links that all differ are large.
  constexpr int32_t manyClasses = 8;
  averageTransfer.assign(numTensors, 0);
  transferTable.clear();
  if (numClasses <= manyClasses)
    transferTable.reserve(static_cast<size_t>(numTensors) * numClasses);
  for (int32_t t = 0; t < numTensors; ++t) {
    __int128 sum = 0;
    for (const Link &link : classes) {
      int64_t ns = link.transferNs(bytes[t]);
      sum += ns;
      if (numClasses <= manyClasses)
        transferTable.push_back(ns);
    }
    averageTransfer[t] = static_cast<int64_t>(sum / std::max(numClasses, 1));
  }
}

/// Level by level from every device: those that are as many hops away.
void Model::finishRoutes() {
  hops.assign(static_cast<size_t>(numDevices) * numDevices, -1);
  lacksLinks = false;
  for (int32_t home = 0; home < numDevices; ++home)
    for (int32_t to = 0; to < numDevices; ++to)
      if (to == home || linked(home, to))
        hops[home * numDevices + to] = home;
      else
        lacksLinks = true;
  if (!lacksLinks)
    return;
  // Of ways with as many hops a tensor of middle size decides.
  __int128 sum = 0;
  for (int64_t size : bytes)
    sum += size;
  auto size = static_cast<int64_t>(sum / std::max(numTensors, 1));
  auto ns = [&](int32_t from, int32_t to) {
    return classes[linkClass[from * numDevices + to]].transferNs(size);
  };
  for (int32_t home = 0; home < numDevices; ++home) {
    int32_t *before = hops.data() + static_cast<size_t>(home) * numDevices;
    std::vector<int64_t> time(numDevices, 0);
    std::vector<int32_t> level, next, found(numDevices, -1);
    for (int32_t d = 0; d < numDevices; ++d)
      if (d != home && before[d] >= 0) {
        time[d] = ns(home, d);
        level.push_back(d);
      }
    for (; !level.empty(); level.swap(next)) {
      next.clear();
      for (int32_t d = 0; d < numDevices; ++d) {
        if (before[d] >= 0)
          continue;
        int32_t best = -1;
        for (int32_t from : level)
          if (linked(from, d) &&
              (best < 0 || time[from] + ns(from, d) < time[d])) {
            best = from;
            time[d] = time[from] + ns(from, d);
          }
        if (best >= 0)
          next.push_back(d);
        found[d] = best;
      }
      for (int32_t d : next)
        before[d] = found[d];
    }
  }
}

void Model::addRelays(int32_t home, std::vector<int32_t> &targets) const {
  for (size_t k = 0; k < targets.size(); ++k)
    if (int32_t from = sourceOf(home, targets[k]);
        from != home &&
        std::find(targets.begin(), targets.end(), from) == targets.end())
      targets.push_back(from);
}

bool Model::pinned(Unit u) const {
  return std::count(allowed.begin() + static_cast<ptrdiff_t>(u) * numDevices,
                    allowed.begin() +
                        static_cast<ptrdiff_t>(u + 1) * numDevices,
                    1) == 1;
}

bool Model::memoryMatters() const {
  // 128 bits: the sum of all bytes may exceed what one device can hold.
  __int128 sum = 0;
  int64_t smallest = std::numeric_limits<int64_t>::max();
  for (int32_t i = 0; i < numNodes; ++i)
    sum += resident[i] + static_cast<__int128>(scratch[i]);
  for (int32_t t = 0; t < numTensors; ++t)
    sum += std::max(memory[t], copy[t]);
  for (int32_t d = 0; d < numDevices; ++d)
    smallest = std::min(smallest, deviceMemory(d));
  return sum > smallest;
}

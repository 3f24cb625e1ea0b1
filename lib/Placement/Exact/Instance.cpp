//===- Instance.cpp - A small problem for exact search ----------*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Exact/Instance.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <numeric>

using namespace baechi::placement;
using namespace baechi::placement::exact;

std::string exact::whyTooLarge(const Model &model) {
  if (model.numNodes > maxOperators)
    return fmt::format("the exact search takes up to {} operators, the graph "
                       "has {}",
                       maxOperators, model.numNodes);
  if (model.numDevices > maxDevices)
    return fmt::format("the exact search takes up to {} devices, the machine "
                       "has {}",
                       maxDevices, model.numDevices);
  if (model.machine->nodes)
    return "the exact search knows nothing of nodes and their network cards: "
           "list devices and links";
  int32_t read = 0;
  for (int32_t t = 0; t < model.numTensors; ++t)
    read += !model.users[t].empty();
  // With two devices only one can need a copy.
  int32_t copies = read * std::max(model.numDevices - 1, 0);
  if (copies > maxCopies)
    return fmt::format("the exact search takes up to {} copies of tensors, {} "
                       "tensors on {} devices may have {}",
                       maxCopies, read, model.numDevices, copies);
  return "";
}

Instance::Instance(const Model &model)
    : model(model), numNodes(model.numNodes), numDevices(model.numDevices),
      before(numNodes, 0), after(numNodes, 0), users(model.numTensors, 0),
      outputBytes(numNodes, 0) {
  for (int32_t i : model.order)
    model.forEachUser(
        i, [&](int32_t user) { before[user] |= before[i] | OpSet(1) << i; });
  for (int32_t i = 0; i < numNodes; ++i)
    forEachBit(before[i], [&](int32_t p) { after[p] |= OpSet(1) << i; });
  for (int32_t t = 0; t < model.numTensors; ++t) {
    for (int32_t user : model.users[t])
      users[t] |= OpSet(1) << user;
    outputBytes[model.producer[t]] += model.memory[t];
    if (users[t] || model.memory[t] > 0)
      tensors.push_back(t);
  }
  int64_t bytes = 0, smallest = never;
  for (int32_t i = 0; i < numNodes; ++i)
    bytes += model.resident[i] + model.scratch[i];
  for (int32_t t : tensors)
    bytes += std::max(model.memory[t], model.copy[t]);
  for (int32_t d = 0; d < numDevices; ++d)
    smallest = std::min(smallest, model.deviceMemory(d));
  memoryMatters = bytes > smallest;
  findPaths();
  findTwins();
  findAlikeDevices();
}

/// Floyd and Warshall, a tensor at a time.
void Instance::findPaths() {
  int32_t n = numDevices;
  path.assign(static_cast<size_t>(model.numTensors) * n * n, never);
  for (int32_t t = 0; t < model.numTensors; ++t) {
    int64_t *of = path.data() + static_cast<size_t>(t) * n * n;
    for (int32_t a = 0; a < n; ++a)
      for (int32_t b = 0; b < n; ++b)
        if (a == b)
          of[a * n + b] = 0;
        else if (model.linked(a, b))
          of[a * n + b] = model.transferNs(t, a, b);
    for (int32_t c = 0; c < n; ++c)
      for (int32_t a = 0; a < n; ++a)
        for (int32_t b = 0; b < n; ++b)
          if (of[a * n + c] != never && of[c * n + b] != never)
            of[a * n + b] =
                std::min(of[a * n + b], of[a * n + c] + of[c * n + b]);
  }
}

bool Instance::twins(int32_t a, int32_t b) const {
  auto equal = [](std::span<const int32_t> x, std::span<const int32_t> y) {
    return std::equal(x.begin(), x.end(), y.begin(), y.end());
  };
  Unit u = model.unit[a], v = model.unit[b];
  if (model.members[u].size() != 1 || model.members[v].size() != 1 ||
      model.scratch[a] != model.scratch[b] ||
      model.resident[a] != model.resident[b] ||
      model.keepsOutputs[a] != model.keepsOutputs[b] ||
      !equal(model.operands[a], model.operands[b]) ||
      !equal(model.controlSources[a], model.controlSources[b]) ||
      !equal(model.controlUsers[a], model.controlUsers[b]))
    return false;
  for (int32_t d = 0; d < numDevices; ++d)
    if (model.timeOf(a, d) != model.timeOf(b, d) ||
        model.mayUse(u, d) != model.mayUse(v, d))
      return false;
  auto [begin, end] = model.tensorsOf(a);
  auto [other, otherEnd] = model.tensorsOf(b);
  if (end - begin != otherEnd - other)
    return false;
  for (int32_t t = begin; t < end; ++t, ++other)
    if (model.bytes[t] != model.bytes[other] ||
        model.memory[t] != model.memory[other] ||
        model.copy[t] != model.copy[other] ||
        !equal(model.users[t], model.users[other]))
      return false;
  return true;
}

void Instance::findTwins() {
  twin.assign(numNodes, -1);
  for (int32_t b = 0; b < numNodes; ++b)
    for (int32_t a = b; a-- > 0 && twin[b] < 0;)
      if (twins(a, b))
        twin[b] = a;
}

void Instance::findAlikeDevices() {
  int32_t n = numDevices;
  alikeDevices.assign(static_cast<size_t>(n) * n, 0);
  auto link = [&](int32_t a, int32_t b) { return model.linkClass[a * n + b]; };
  for (int32_t a = 0; a < n; ++a)
    for (int32_t b = 0; b < n; ++b) {
      bool same = a != b && model.deviceMemory(a) == model.deviceMemory(b) &&
                  link(a, b) == link(b, a);
      for (int32_t c = 0; c < n && same; ++c)
        if (c != a && c != b)
          same = link(a, c) == link(b, c) && link(c, a) == link(c, b);
      for (int32_t i = 0; i < numNodes && same; ++i)
        same = model.timeOf(i, a) == model.timeOf(i, b);
      alikeDevices[a * n + b] = same;
    }
}

int64_t exact::oneMachineBound(std::vector<Job> &jobs) {
  std::sort(jobs.begin(), jobs.end(),
            [](const Job &a, const Job &b) { return a.head < b.head; });
  // Always the ready job with the longest tail; what is left of each is in a
  // heap by tail.
  struct Ready {
    int64_t tail, left;
    bool operator<(const Ready &other) const { return tail < other.tail; }
  };
  std::vector<Ready> ready;
  int64_t now = 0, bound = 0;
  size_t next = 0;
  while (next < jobs.size() || !ready.empty()) {
    if (ready.empty())
      now = std::max(now, jobs[next].head);
    for (; next < jobs.size() && jobs[next].head <= now; ++next) {
      ready.push_back({jobs[next].tail, jobs[next].length});
      std::push_heap(ready.begin(), ready.end());
    }
    auto &[tail, left] = ready.front();
    int64_t until = now + left;
    if (next < jobs.size() && jobs[next].head < until) {
      left -= jobs[next].head - now;
      now = jobs[next].head;
      continue;
    }
    now = until;
    bound = std::max(bound, now + tail);
    std::pop_heap(ready.begin(), ready.end());
    ready.pop_back();
  }
  return bound;
}

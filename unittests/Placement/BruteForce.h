//===- BruteForce.h - All placements on a grid of times --------*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Tries every device, every start and every transfer of a problem whose times
/// are a few nanoseconds, and asks `verify`: no idea about schedules is shared
/// with any algorithm.
///
//===----------------------------------------------------------------------===//
#ifndef BAECHI_UNITTESTS_PLACEMENT_BRUTEFORCE_H
#define BAECHI_UNITTESTS_PLACEMENT_BRUTEFORCE_H

#include "SmallProblems.h"

#include <algorithm>

namespace baechi::placement::test {

class BruteForce {
public:
  explicit BruteForce(const Problem &problem)
      : problem(problem),
        devices(static_cast<int32_t>(problem.machine.devices.size())) {
    size_t n = problem.graph.ops.size();
    current.device.assign(n, 0);
    current.startNs.assign(n, 0);
    for (const Edge &edge : problem.graph.edges)
      if (edge.output >= 0)
        tensors.emplace_back(edge.from, edge.output);
    std::sort(tensors.begin(), tensors.end());
    tensors.erase(std::unique(tensors.begin(), tensors.end()), tensors.end());
  }

  /// The least makespan below \p limit; nullopt: there is none.
  std::optional<int64_t> best(int64_t limit) {
    cutoff = limit;
    placeFrom(0);
    return cutoff < limit ? std::optional(cutoff) : std::nullopt;
  }

private:
  int64_t timeOf(size_t op) const {
    const auto &kind = problem.machine.devices[current.device[op]].kind;
    for (const auto &[name, time] : problem.graph.ops[op].timeNs)
      if (name == kind)
        return time;
    return -1;
  }
  int64_t endOf(size_t op) const { return current.startNs[op] + timeOf(op); }

  void placeFrom(size_t op) {
    if (op == problem.graph.ops.size()) {
      transferFrom(0, 0);
      return;
    }
    for (int32_t d = 0; d < devices; ++d) {
      current.device[op] = d;
      if (timeOf(op) < 0)
        continue;
      int64_t first = 0;
      for (const Edge &edge : problem.graph.edges)
        if (static_cast<size_t>(edge.to) == op)
          first = std::max(first, endOf(edge.from));
      for (int64_t at = first; at + timeOf(op) < cutoff; ++at) {
        current.startNs[op] = at;
        placeFrom(op + 1);
      }
    }
  }

  void transferFrom(size_t tensor, int32_t to) {
    if (tensor == tensors.size()) {
      judge();
      return;
    }
    if (to == devices) {
      transferFrom(tensor + 1, 0);
      return;
    }
    auto [op, output] = tensors[tensor];
    int64_t deadline = cutoff - 1;
    bool isRead = false, isMoved = false;
    for (const Edge &edge : problem.graph.edges) {
      if (edge.from != op || edge.output != output)
        continue;
      isMoved |= current.device[edge.to] != current.device[op];
      if (current.device[edge.to] != to)
        continue;
      isRead = true;
      deadline = std::min(deadline, current.startNs[edge.to]);
    }
    if (to == current.device[op] || !isRead)
      transferFrom(tensor, to + 1);
    if (to == current.device[op] || !isMoved)
      return;
    for (int32_t from = 0; from < devices; ++from) {
      const auto &link = problem.machine.link(from, to);
      if (from == to || !link)
        continue;
      int64_t ns =
          link->transferNs(problem.graph.ops[op].outputs[output].bytes);
      for (int64_t at = endOf(op); at + ns <= deadline; ++at) {
        current.transfers.push_back({op, output, from, to, at, at + ns});
        transferFrom(tensor, to + 1);
        current.transfers.pop_back();
      }
    }
  }

  void judge() {
    int64_t makespan = 0;
    for (size_t op = 0; op < problem.graph.ops.size(); ++op)
      makespan = std::max(makespan, endOf(op));
    for (const Transfer &transfer : current.transfers)
      makespan = std::max(makespan, transfer.endNs);
    current.makespanNs = makespan;
    if (makespan < cutoff && verify(problem, current).empty())
      cutoff = makespan;
  }

  const Problem &problem;
  int32_t devices;
  std::vector<std::pair<int32_t, int32_t>> tensors;
  Placement current;
  int64_t cutoff = 0;
};

/// A random problem whose times and sizes are at most 3, its memories around
/// the least that is enough; false: not well formed.
inline bool drawTiny(uint32_t seed, int32_t most, Problem &problem) {
  SmallProblems draws(seed);
  problem = draws.draw(2, most);
  for (Operator &op : problem.graph.ops) {
    for (auto &[kind, time] : op.timeNs)
      time %= 4;
    for (Output &output : op.outputs)
      output = {output.bytes % 3, output.memory % 4, output.copy % 4};
    op.scratch %= 3;
    op.resident %= 3;
  }
  for (auto &link : problem.machine.links)
    if (link)
      link = Link{link->latencyNs % 3, 1000};
  if (!check(problem).empty() || !SmallProblems::tighten(problem, 100))
    return false;
  int64_t extra = draws.below(4) - 1;
  for (Device &device : problem.machine.devices)
    device.memory = std::max<int64_t>(0, device.memory + extra);
  return true;
}

} // namespace baechi::placement::test

#endif // BAECHI_UNITTESTS_PLACEMENT_BRUTEFORCE_H

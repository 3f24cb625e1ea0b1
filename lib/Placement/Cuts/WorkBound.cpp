//===- WorkBound.cpp - What no placement of ways can better ---------------===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Cuts/WorkBound.h"

#include <algorithm>
#include <optional>
#include <set>

using namespace baechi::placement;
using namespace baechi::placement::cuts;

WorkBound::WorkBound(const Problem &problem, const Alternatives &alternatives)
    : alternatives(alternatives),
      numDevices(static_cast<int64_t>(problem.machine.devices.size())) {
  std::set<std::string> kinds;
  for (const Device &device : problem.machine.devices)
    kinds.insert(device.kind);
  Operator timed;
  auto least = [&](const auto &part) {
    timed.timeNs = part.timeNs;
    std::optional<int64_t> ns;
    for (const std::string &kind : kinds)
      if (std::optional<int64_t> there = timeOn(timed, kind))
        ns = std::min(ns.value_or(*there), *there);
    return ns.value_or(0);
  };
  for (size_t op = 0; op < problem.graph.ops.size(); ++op) {
    std::vector<__int128> &each = work.emplace_back();
    each.push_back(least(problem.graph.ops[op]));
    for (const Alternative &way : alternatives.of[op]) {
      __int128 sum = 0;
      for (const Piece &piece : way.pieces)
        sum += least(piece);
      each.push_back(sum);
    }
  }
}

int64_t WorkBound::of(const Ways &ways) const {
  __int128 sum = 0;
  for (size_t op = 0; op < ways.size(); ++op)
    sum += work[op][ways[op] + 1];
  return shared(sum);
}

int64_t WorkBound::ofAll() const {
  __int128 sum = 0;
  for (const std::vector<__int128> &each : work)
    sum += *std::min_element(each.begin(), each.end());
  return shared(sum);
}

int64_t WorkBound::pieces(const Ways &ways) const {
  int64_t count = 0;
  for (size_t op = 0; op < ways.size(); ++op)
    count +=
        ways[op] < 0
            ? 1
            : static_cast<int64_t>(alternatives.of[op][ways[op]].pieces.size());
  return count;
}

int64_t WorkBound::shared(__int128 work) const {
  return static_cast<int64_t>((work + numDevices - 1) / numDevices);
}

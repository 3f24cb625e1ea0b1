//===- Certificate.cpp - An order that the rest still fits in ---*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Memory/Certificate.h"

#include <algorithm>
#include <numeric>

using namespace baechi::placement;
using namespace baechi::placement::memory;

RangeMaximum::RangeMaximum(const std::vector<int64_t> &values) {
  // A leaf more on both sides: ranges are given by the leaves around them.
  while (leaves < static_cast<int32_t>(values.size()) + 2)
    leaves *= 2;
  most.assign(2 * static_cast<size_t>(leaves), gone);
  sum.assign(most.size(), 0);
  std::copy(values.begin(), values.end(), most.begin() + leaves + 1);
  for (int32_t node = leaves - 1; node > 0; --node)
    most[node] = std::max(most[size_t(2) * node], most[size_t(2) * node + 1]);
}

void RangeMaximum::add(int32_t begin, int32_t end, int64_t bytes) {
  auto apply = [&](int32_t node) {
    most[node] += bytes;
    sum[node] += bytes;
  };
  auto update = [&](int32_t node) {
    most[node] = std::max(most[size_t(2) * node], most[size_t(2) * node + 1]) +
                 sum[node];
  };
  if (begin >= end)
    return;
  int32_t left = leaves + begin, right = leaves + end + 1;
  while ((left ^ right) != 1) {
    if (left % 2 == 0)
      apply(left + 1);
    if (right % 2 == 1)
      apply(right - 1);
    update(left /= 2);
    update(right /= 2);
  }
  while (left /= 2)
    update(left);
}

int64_t RangeMaximum::max(int32_t begin, int32_t end) const {
  if (begin >= end)
    return gone;
  int64_t fromLeft = gone, fromRight = gone;
  int32_t left = leaves + begin, right = leaves + end + 1;
  while ((left ^ right) != 1) {
    if (left % 2 == 0)
      fromLeft = std::max(fromLeft, most[left + 1]);
    if (right % 2 == 1)
      fromRight = std::max(fromRight, most[right - 1]);
    fromLeft += sum[left /= 2];
    fromRight += sum[right /= 2];
  }
  int64_t best = std::max(fromLeft, fromRight);
  while (left /= 2)
    best += sum[left];
  return best;
}

Certificate::Certificate(const Steps &steps, std::span<const Step> order)
    : steps(steps), sequence(steps.model.numDevices),
      nextAt(steps.model.numDevices, 0), place(steps.size()),
      sourcePlace(steps.transfers.size()), usesEnd(steps.numHoldings(), 0),
      taken(steps.size(), 0) {
  int32_t devices = steps.model.numDevices;
  std::vector<int32_t> &count = usesEnd;
  for (Step s : order)
    steps.forEachRead(s, [&](int32_t h) { ++count[h]; });
  uses.begin.resize(steps.numHoldings() + 1);
  std::partial_sum(count.begin(), count.end(), uses.begin.begin() + 1);
  uses.items.resize(uses.begin.back());
  std::copy(uses.begin.begin(), uses.begin.end() - 1, usesEnd.begin());
  for (Step s : order) {
    auto &own = sequence[steps.deviceOf(s)];
    place[s] = static_cast<int32_t>(own.size());
    own.push_back(s);
    if (!steps.isRun(s)) {
      int32_t from = steps.transfer(s).from;
      sourcePlace[s - steps.model.numNodes] =
          static_cast<int32_t>(sequence[from].size()) - 1;
    }
    steps.forEachRead(s, [&](int32_t h) { uses.items[usesEnd[h]++] = s; });
  }
  // Differences first, then levels.
  std::vector<std::vector<int64_t>> level(devices);
  auto resident = steps.resident();
  for (int32_t d = 0; d < devices; ++d) {
    level[d].assign(sequence[d].size() + 1, 0);
    level[d][0] = resident[d];
  }
  for (Step s : order) {
    auto &own = level[steps.deviceOf(s)];
    steps.forEachBorn(s, [&](int32_t h) {
      own[place[s]] += steps.bytesOf(h);
      if (!steps.isKept(h))
        own[std::max(place[s], lastHeld(h)) + 1] -= steps.bytesOf(h);
    });
    if (steps.isRun(s) && !steps.isInstant(s)) {
      own[place[s]] += steps.model.scratch[s];
      own[place[s] + 1] -= steps.model.scratch[s];
    }
  }
  for (int32_t d = 0; d < devices; ++d) {
    std::partial_sum(level[d].begin(), level[d].end(), level[d].begin());
    level[d].pop_back();
  }
  // What takes no time has let go of its operands when it holds its results.
  for (Step s : order)
    if (steps.isInstant(s)) {
      int64_t &own = level[steps.deviceOf(s)][place[s]];
      steps.forEachRead(s, [&](int32_t h) {
        if (!steps.isKept(h) && uses.items[usesEnd[h] - 1] == s)
          own -= steps.bytesOf(h);
      });
      steps.forEachBorn(s, [&](int32_t h) {
        if (!steps.isKept(h) && usesEnd[h] == uses.begin[h])
          own -= steps.bytesOf(h);
      });
    }
  for (auto &own : level)
    levels.emplace_back(own);
}

/// The last index of its device's sequence that a holding is there for the sake
/// of what is left of its uses; -1: none.
int32_t Certificate::lastHeld(int32_t holding) const {
  int32_t end = usesEnd[holding];
  if (end == uses.begin[holding])
    return -1;
  Step last = uses.items[end - 1];
  return steps.isRun(last) ? place[last]
                           : sourcePlace[last - steps.model.numNodes];
}

bool Certificate::fits() const {
  for (int32_t d = 0; d < steps.model.numDevices; ++d)
    if (levels[d].max(0, static_cast<int32_t>(sequence[d].size())) >
        steps.model.deviceMemory(d))
      return false;
  return true;
}

void Certificate::apply(Change change) {
  levels[change.device].add(change.begin, change.end, change.bytes);
  changes.push_back(change);
}

/// A use of a holding is over: those that are left hold it less long.
void Certificate::release(int32_t holding) {
  int32_t before = lastHeld(holding);
  int32_t &end = usesEnd[holding];
  if (!taken[uses.items[end - 1]])
    return;
  while (end > uses.begin[holding] && taken[uses.items[end - 1]])
    --end;
  if (!steps.isKept(holding))
    apply({steps.whereHeld(holding), lastHeld(holding) + 1, before + 1,
           -steps.bytesOf(holding)});
}

bool Certificate::take(Step s) {
  int32_t d = steps.deviceOf(s), at = place[s];
  next(d);
  changes.clear();
  endsBefore.clear();
  taken[s] = 1;
  steps.forEachRead(s, [&](int32_t h) {
    endsBefore.emplace_back(h, usesEnd[h]);
    release(h);
  });
  if (nextAt[d] < at) {
    // What it allocates is there from now on, not from its turn on.
    int64_t born = 0;
    steps.forEachBorn(s, [&](int32_t h) {
      if (steps.isKept(h) || usesEnd[h] > uses.begin[h])
        born += steps.bytesOf(h);
    });
    apply({d, nextAt[d], at, born});
    if (levels[d].max(nextAt[d], at) > steps.model.deviceMemory(d)) {
      for (const Change &change : changes)
        levels[change.device].add(change.begin, change.end, -change.bytes);
      for (auto [h, end] : endsBefore)
        usesEnd[h] = end;
      taken[s] = 0;
      return false;
    }
  }
  levels[d].add(at, at + 1, RangeMaximum::gone);
  return true;
}

Step Certificate::next(int32_t d) {
  int32_t &at = nextAt[d];
  while (at < static_cast<int32_t>(sequence[d].size()) &&
         taken[sequence[d][at]])
    ++at;
  return at < static_cast<int32_t>(sequence[d].size()) ? sequence[d][at] : -1;
}

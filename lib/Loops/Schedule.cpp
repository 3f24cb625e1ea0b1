//===- Schedule.cpp - Blocks that run at once ------------------*- C++ -*--===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Baechi/Loops/Schedule.h"
#include <algorithm>

using namespace baechi::loops;

namespace {
int32_t partsIn(const std::vector<int64_t> &cuts) {
  return static_cast<int32_t>(cuts.size()) - 1;
}

int32_t roundsOf(int32_t parts, int32_t workers) {
  return (parts + workers - 1) / workers;
}

/// Block (space, others...) of a clock: each worker has a space of its own, and
/// in every other axis a part of its own, which goes to the worker before it.
void rotate(Schedule &schedule) {
  size_t others = schedule.cuts.size() - 1;
  int32_t workers = schedule.workers, clock = 0;
  int32_t spaces = partsIn(schedule.cuts[0]);
  // One wheel a rotating axis: how far it is turned, then which round of parts.
  std::vector<int32_t> turned(others, 0), round(others, 0);
  auto advance = [](std::vector<int32_t> &wheels, auto sizeOf) {
    for (size_t i = wheels.size(); i-- > 0;) {
      if (++wheels[i] < sizeOf(i))
        return true;
      wheels[i] = 0;
    }
    return false;
  };
  do {
    do {
      for (int32_t s = 0; s < roundsOf(spaces, workers); ++s) {
        for (int32_t worker = 0; worker < workers; ++worker) {
          Block block{clock, worker, {s * workers + worker}};
          bool exists = block.parts[0] < spaces;
          for (size_t i = 0; i < others; ++i) {
            int32_t part = round[i] * workers + (turned[i] + worker) % workers;
            exists &= part < partsIn(schedule.cuts[i + 1]);
            block.parts.push_back(part);
          }
          if (exists)
            schedule.blocks.push_back(std::move(block));
        }
        ++clock;
      }
    } while (advance(round, [&](size_t i) {
      return roundsOf(partsIn(schedule.cuts[i + 1]), workers);
    }));
  } while (advance(turned, [&](size_t) { return workers; }));
}

void inWaves(Schedule &schedule) {
  int32_t spaces = partsIn(schedule.cuts[0]);
  int32_t times = partsIn(schedule.cuts[1]);
  for (int32_t clock = 0; clock < spaces + times - 1; ++clock)
    for (int32_t s = std::max(0, clock - times + 1);
         s <= std::min(clock, spaces - 1); ++s)
      schedule.blocks.push_back({clock, s % schedule.workers, {s, clock - s}});
}
} // namespace

std::vector<int32_t> Schedule::partsOf(const std::vector<int64_t> &key) const {
  std::vector<int32_t> parts;
  for (size_t axis = 0; axis < axes.size(); ++axis) {
    int64_t at = Affine{axes[axis], 0}.of(key);
    const std::vector<int64_t> &of = cuts[axis];
    parts.push_back(static_cast<int32_t>(
        std::upper_bound(of.begin() + 1, of.end() - 1, at) - of.begin() - 1));
  }
  return parts;
}

std::vector<int64_t>
baechi::loops::balancedCuts(int64_t lower, const std::vector<int64_t> &counts,
                            int32_t parts) {
  int64_t size = static_cast<int64_t>(counts.size());
  parts = static_cast<int32_t>(std::min<int64_t>(parts, size));
  int64_t total = 0;
  for (int64_t count : counts)
    total += count;
  std::vector<int64_t> cuts{lower};
  int64_t sum = 0, at = 0;
  for (int32_t part = 1; part < parts; ++part) {
    // Values are left for the parts to come, and one at least is in this one.
    int64_t first = cuts.back() - lower + 1, last = size - (parts - part);
    int64_t goal = total / parts * part + total % parts * part / parts;
    while (at < first || (at < last && sum + counts[at] / 2 < goal))
      sum += counts[at++];
    cuts.push_back(lower + at);
  }
  cuts.push_back(lower + size);
  return cuts;
}

std::vector<std::vector<int64_t>>
baechi::loops::axesOf(const Loop &loop, const Verdict &verdict) {
  std::vector<std::vector<int64_t>> axes;
  auto addKey = [&](int32_t key) {
    axes.emplace_back(loop.keys.size(), 0);
    axes.back()[key] = 1;
  };
  switch (verdict.scheme) {
  case Scheme::Independent: {
    if (!verdict.keys.empty()) {
      addKey(verdict.keys[0]);
      break;
    }
    // Any key is right: the one with the most values.
    auto most = std::max_element(loop.keys.begin(), loop.keys.end(),
                                 [](const Key &a, const Key &b) {
                                   return a.upper - a.lower < b.upper - b.lower;
                                 });
    addKey(static_cast<int32_t>(most - loop.keys.begin()));
    break;
  }
  case Scheme::Disjoint:
  case Scheme::Wavefront:
    for (int32_t key : verdict.keys)
      addKey(key);
    break;
  case Scheme::Skewed:
    axes.push_back(verdict.form);
    break;
  case Scheme::Timed:
    return verdict.waves;
  case Scheme::Serial:
    break;
  }
  return axes;
}

Schedule baechi::loops::makeSchedule(const Loop &loop, const Verdict &verdict,
                                     std::vector<std::vector<int64_t>> cuts,
                                     int32_t workers) {
  Schedule schedule;
  schedule.axes = axesOf(loop, verdict);
  schedule.cuts = std::move(cuts);
  schedule.workers = workers;
  if (schedule.axes.empty())
    return schedule;
  if (verdict.scheme == Scheme::Wavefront || verdict.scheme == Scheme::Timed)
    inWaves(schedule);
  else
    rotate(schedule);
  return schedule;
}

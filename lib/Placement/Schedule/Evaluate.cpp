//===- Evaluate.cpp - Peaks and results of schedules ------------*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Schedule/Schedule.h"

#include <algorithm>
#include <map>
#include <numeric>

using namespace baechi::placement;

namespace {

/// The bytes of one device over time. Its nodes run one after another, so that
/// what begins and ends with them needs no sorting of its own; transfers begin
/// and end at any time.
class DeviceLevel {
public:
  struct Change {
    int64_t at, bytes;
    bool operator<(const Change &other) const { return at < other.at; }
  };
  /// A node of this device, in the order in which they run.
  struct Run {
    int64_t start, end;
    int64_t held = 0;     ///< from its start on
    int64_t released = 0; ///< at its end
  };

  int64_t resident = 0;
  std::vector<Run> runs;
  std::vector<Change> gains, losses; ///< by transfers

  int64_t peak() {
    std::sort(gains.begin(), gains.end());
    std::sort(losses.begin(), losses.end());
    level = highest = resident;
    for (size_t first = 0, next; first < runs.size(); first = next) {
      int64_t start = runs[first].start;
      // What ends makes room for what begins at the same time, also between
      // nodes of no duration.
      advance(start, /*withGains=*/false);
      for (next = first; next < runs.size() && runs[next].start == start;
           ++next)
        if (runs[next].end == start)
          level -= runs[next].released;
      advance(start, /*withGains=*/true);
      for (size_t k = first; k < next; ++k)
        add(runs[k].held);
      const Run &last = runs[next - 1];
      if (last.end == start)
        continue;
      advance(last.end, /*withGains=*/false);
      level -= last.released;
    }
    advance(never, /*withGains=*/true);
    return highest;
  }

private:
  void add(int64_t bytes) {
    level += bytes;
    highest = std::max(highest, level);
  }
  /// Everything until \p until; of what transfers begin just then, only if
  /// \p withGains.
  void advance(int64_t until, bool withGains) {
    while (nextGain < gains.size() || nextLoss < losses.size()) {
      int64_t gain = nextGain < gains.size() ? gains[nextGain].at : never;
      int64_t loss = nextLoss < losses.size() ? losses[nextLoss].at : never;
      if (loss <= gain) {
        if (loss > until)
          return;
        level -= losses[nextLoss++].bytes;
      } else {
        if (gain > until || (gain == until && !withGains))
          return;
        add(gains[nextGain++].bytes);
      }
    }
  }

  size_t nextGain = 0, nextLoss = 0;
  int64_t level = 0, highest = 0;
};

} // namespace

std::vector<int64_t>
baechi::placement::schedulePeaks(const Model &model, const Assignment &device,
                                 const Schedule &schedule) {
  std::vector<DeviceLevel> levels(model.numDevices);
  auto endOf = [&](int32_t i) {
    return schedule.start[i] + model.timeOf(i, device[i]);
  };
  // Nodes of no duration come before the one that starts when they do.
  std::vector<int32_t> byStart(model.numNodes), place(model.numNodes);
  std::iota(byStart.begin(), byStart.end(), 0);
  std::sort(byStart.begin(), byStart.end(), [&](int32_t a, int32_t b) {
    int64_t startA = schedule.start[a], startB = schedule.start[b];
    return startA != startB ? startA < startB : endOf(a) < endOf(b);
  });
  for (int32_t i : byStart) {
    DeviceLevel &level = levels[device[i]];
    place[i] = static_cast<int32_t>(level.runs.size());
    level.runs.push_back({schedule.start[i], endOf(i)});
    level.runs.back().held = level.runs.back().released = model.scratch[i];
    if (level.runs.back().start == level.runs.back().end)
      level.runs.back().held = level.runs.back().released = 0;
    level.resident += model.resident[i];
  }
  // The last of the users of a tensor on a device, and when it ends.
  auto lastUser = [&](int32_t t, int32_t d, int32_t last) {
    for (int32_t user : model.users[t])
      if (device[user] == d && (last < 0 || place[user] > place[last]))
        last = user;
    return last;
  };
  std::vector<int64_t> sentUntil(model.numTensors, -1);
  // What is passed on stays until that has ended.
  std::map<std::pair<int32_t, int32_t>, int64_t> passedUntil;
  for (const ScheduledTransfer &transfer : schedule.transfers) {
    int32_t t = transfer.tensor, from = transfer.from;
    int64_t &until = from == device[model.producer[t]] ? sentUntil[t]
                                                       : passedUntil[{t, from}];
    until = std::max(until, transfer.end);
  }
  for (const ScheduledTransfer &transfer : schedule.transfers) {
    int32_t t = transfer.tensor;
    DeviceLevel &level = levels[transfer.to];
    int32_t last = lastUser(t, transfer.to, -1);
    int64_t held = transfer.end;
    if (!passedUntil.empty())
      if (auto it = passedUntil.find({t, transfer.to}); it != passedUntil.end())
        held = it->second;
    bool used = last >= 0 && endOf(last) > held;
    int64_t until = used ? endOf(last) : held;
    if (until <= transfer.start)
      continue;
    level.gains.push_back({transfer.start, model.copy[t]});
    if (used)
      level.runs[place[last]].released += model.copy[t];
    else
      level.losses.push_back({until, model.copy[t]});
  }
  for (int32_t i = 0; i < model.numNodes; ++i) {
    DeviceLevel &level = levels[device[i]];
    auto [begin, end] = model.tensorsOf(i);
    for (int32_t t = begin; t < end; ++t) {
      if (model.memory[t] == 0)
        continue;
      int32_t last = lastUser(t, device[i], i);
      bool sent = sentUntil[t] > endOf(last);
      int64_t until = model.keepsOutputs[i] ? schedule.makespan
                      : sent                ? sentUntil[t]
                                            : endOf(last);
      if (until <= schedule.start[i])
        continue;
      level.runs[place[i]].held += model.memory[t];
      if (!model.keepsOutputs[i] && sent)
        level.losses.push_back({until, model.memory[t]});
      else if (!model.keepsOutputs[i])
        level.runs[place[last]].released += model.memory[t];
    }
  }
  std::vector<int64_t> peaks;
  for (DeviceLevel &level : levels)
    peaks.push_back(level.peak());
  return peaks;
}

Placement baechi::placement::toPlacement(const Model &model,
                                         const Assignment &device,
                                         const Schedule &schedule) {
  Placement placement;
  placement.device = device;
  placement.startNs = schedule.start;
  placement.makespanNs = schedule.makespan;
  for (const ScheduledTransfer &transfer : schedule.transfers) {
    int32_t source = model.producer[transfer.tensor];
    placement.transfers.push_back(
        {source, transfer.tensor - model.firstTensor[source], transfer.from,
         transfer.to, transfer.start, transfer.end});
  }
  return placement;
}

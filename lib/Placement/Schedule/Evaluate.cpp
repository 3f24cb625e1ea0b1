//===- Evaluate.cpp - Peaks and results of schedules ------------*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Schedule/Schedule.h"

#include <algorithm>

using namespace baechi::placement;

std::vector<int64_t>
baechi::placement::schedulePeaks(const Model &model, const Assignment &device,
                                 const Schedule &schedule) {
  struct Change {
    int64_t at, delta;
  };
  std::vector<std::vector<Change>> changes(model.numDevices);
  std::vector<int64_t> resident(model.numDevices, 0);
  auto hold = [&](int32_t d, int64_t from, int64_t until, int64_t bytes) {
    if (bytes == 0 || until <= from)
      return;
    changes[d].push_back({from, bytes});
    changes[d].push_back({until, -bytes});
  };
  auto endOf = [&](int32_t i) {
    return schedule.start[i] + model.timeOf(i, device[i]);
  };
  std::vector<int64_t> lastUse(model.numTensors);
  for (int32_t t = 0; t < model.numTensors; ++t) {
    int32_t source = model.producer[t];
    lastUse[t] = endOf(source);
    for (int32_t user : model.users[t])
      if (device[user] == device[source])
        lastUse[t] = std::max(lastUse[t], endOf(user));
  }
  for (const ScheduledTransfer &transfer : schedule.transfers) {
    int32_t t = transfer.tensor;
    lastUse[t] = std::max(lastUse[t], transfer.end);
    int64_t last = transfer.end;
    for (int32_t user : model.users[t])
      if (device[user] == transfer.to)
        last = std::max(last, endOf(user));
    hold(transfer.to, transfer.start, last, model.copy[t]);
  }
  for (int32_t i = 0; i < model.numNodes; ++i) {
    resident[device[i]] += model.resident[i];
    hold(device[i], schedule.start[i], endOf(i), model.scratch[i]);
    auto [begin, end] = model.tensorsOf(i);
    for (int32_t t = begin; t < end; ++t)
      hold(device[i], schedule.start[i],
           model.keepsOutputs[i] ? schedule.makespan : lastUse[t],
           model.memory[t]);
  }
  std::vector<int64_t> peaks = resident;
  for (int32_t d = 0; d < model.numDevices; ++d) {
    std::sort(changes[d].begin(), changes[d].end(),
              [](const Change &a, const Change &b) {
                return std::tie(a.at, a.delta) < std::tie(b.at, b.delta);
              });
    int64_t level = resident[d];
    for (const Change &change : changes[d]) {
      level += change.delta;
      peaks[d] = std::max(peaks[d], level);
    }
  }
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
        {source, transfer.tensor - model.firstTensor[source], device[source],
         transfer.to, transfer.start, transfer.end});
  }
  return placement;
}

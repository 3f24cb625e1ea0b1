//===- Screen.cpp - What a graph in pieces is worth, quickly ----*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Cuts/Screen.h"
#include "Baechi/Placement/Model/Pool.h"
#include "Memory/Memory.h"
#include "Placers/Placers.h"
#include "Schedule/Evaluator.h"

#include <algorithm>

using namespace baechi::placement;
using namespace baechi::placement::cuts;

namespace {

/// Each unit where the lane of its first piece is, or on the first device that
/// may have it. What is whole is on the first lane; sums go round.
Assignment laneAssignment(const Model &model,
                          const std::vector<Expansion::Origin> &origins) {
  std::vector<int32_t> lanes = laneDevices(*model.machine);
  std::vector<int32_t> home(model.numUnits, -1);
  Assignment device;
  size_t sums = 0;
  for (size_t i = 0; i < origins.size(); ++i) {
    Unit unit = model.unit[i];
    if (home[unit] < 0) {
      const Expansion::Origin &origin = origins[i];
      size_t lane = origin.piece >= 0 ? static_cast<size_t>(origin.piece)
                    : origin.isHelper ? sums++
                                      : 0;
      home[unit] = lanes[lane % lanes.size()];
      for (int32_t d = 0;
           d < model.numDevices && !model.mayUse(unit, home[unit]); ++d)
        if (model.mayUse(unit, d))
          home[unit] = d;
    }
    device.push_back(home[unit]);
  }
  return device;
}

} // namespace

std::vector<int32_t>
baechi::placement::cuts::laneDevices(const Machine &machine) {
  std::vector<int32_t> lanes;
  for (size_t d = 0; d < machine.devices.size(); ++d)
    if (!isPool(machine.devices[d]) &&
        !machine.isStage(static_cast<int32_t>(d)))
      lanes.push_back(static_cast<int32_t>(d));
  if (lanes.empty())
    lanes.push_back(0);
  return lanes;
}

int64_t
baechi::placement::cuts::screen(const Problem &problem,
                                const std::vector<Expansion::Origin> &origins,
                                Objective objective) {
  if (!check(problem).empty())
    return never;
  Model model(problem);
  Evaluator evaluator(model);
  Scheduler scheduler(model);
  std::vector<int32_t> unitDevice(model.numUnits);
  int64_t best = never;
  auto consider = [&](const Assignment &device) {
    for (int32_t i = 0; i < model.numNodes; ++i)
      unitDevice[model.unit[i]] = device[i];
    Schedule schedule;
    if (evaluator.run(unitDevice, {}, never, &schedule) == never)
      return;
    std::vector<int64_t> peaks = schedulePeaks(model, device, schedule);
    for (int32_t d = 0; d < model.numDevices; ++d)
      if (peaks[d] > model.deviceMemory(d)) {
        if (!memory::scheduleWithin(scheduler, model, device, schedule))
          return;
        break;
      }
    best =
        std::min(best, objective == Objective::MaxLoad ? maxLoad(model, device)
                                                       : schedule.makespan);
  };
  consider(laneAssignment(model, origins));
  consider(placers::earliestStart(model).device);
  return best;
}

//===- Contest.cpp - The best of what was proposed --------------*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Session/Contest.h"
#include "Baechi/Placement/Session/Place.h"

#include <fmt/format.h>

#include <algorithm>

using namespace baechi::placement;
using namespace baechi::placement::session;

/// Larger is earlier.
static std::vector<int64_t> toPriority(const std::vector<int64_t> &start) {
  int64_t latest = *std::max_element(start.begin(), start.end());
  std::vector<int64_t> priority;
  for (int64_t ns : start)
    priority.push_back(latest - ns);
  return priority;
}

/// Within the memories, and the best in the orders of \p priorities.
bool Contest::schedule(const Assignment &device, Schedule &schedule,
                       const std::vector<std::vector<int64_t>> &priorities) {
  if (objective != Objective::Period)
    // Of what comes later most is cut off early.
    return memory::scheduleWithin(scheduler, model, *known->lean, device,
                                  schedule, priorities,
                                  /*isFirst=*/!hasWinner());
  if (!memory::scheduleWithin(scheduler, model, *known->lean, device, schedule))
    return false;
  // The shortest step need not be the one that follows another soonest.
  int64_t best = periods.run(device, schedule).ns();
  for (const std::vector<int64_t> &priority : priorities) {
    Schedule other;
    Scheduler::Options scheduling;
    scheduling.priority = priority;
    scheduler.run(device, scheduling, &other);
    if (!overflow(schedulePeaks(model, device, other)).empty())
      continue;
    if (int64_t ns = periods.run(device, other).ns(); ns < best) {
      best = ns;
      schedule = std::move(other);
    }
  }
  return true;
}

void Contest::consider(const std::string &name, Assignment device,
                       const std::vector<std::vector<int64_t>> &starts,
                       bool mayRepair) {
  Candidate candidate{name};
  std::vector<std::string> notes;
  Schedule schedule;
  std::vector<std::vector<int64_t>> priorities;
  for (const auto &start : starts)
    if (!start.empty())
      priorities.push_back(toPriority(start));
  bool found = this->schedule(device, schedule, priorities);
  if (!found && mayRepair) {
    Assignment before = device;
    // Placers often agree.
    auto [it, isNew] = repaired.try_emplace(device);
    if (isNew && !known->unfit.contains(before)) {
      if (memory::repair(model, device, memory::quickRepair,
                         known->lean->get()))
        it->second = device;
      else
        known->unfit.insert(before);
    }
    device = it->second;
    found = !device.empty() && this->schedule(device, schedule, priorities);
    if (found) {
      int32_t moved = 0;
      for (int32_t i = 0; i < model.numNodes; ++i)
        moved += device[i] != before[i];
      notes.push_back(
          fmt::format("{}: {} operators were moved to keep the memory limits",
                      name, moved));
    }
  }
  if (found)
    keep(candidate, toPlacement(model, device, schedule), std::move(notes));
  else
    candidate.problem = "it does not fit the memories";
  candidates.push_back(std::move(candidate));
}

void Contest::considerIfBest(const std::string &name, Assignment device,
                             const std::vector<std::vector<int64_t>> &starts,
                             bool mayRepair) {
  int64_t before = winner.value;
  consider(name, std::move(device), starts, mayRepair);
  if (winner.value == before)
    candidates.pop_back();
}

void Contest::remember(int64_t value, const Assignment &device) {
  tried.try_emplace(value, device);
  constexpr size_t most = 12;
  if (tried.size() > most)
    tried.erase(std::prev(tried.end()));
}

void Contest::keep(Candidate &candidate, Placement placement,
                   std::vector<std::string> notes) {
  candidate.feasible = true;
  candidate.makespanNs = placement.makespanNs;
  candidate.maxLoadNs = maxLoad(model, placement);
  int64_t value = candidate.makespanNs;
  if (objective == Objective::MaxLoad)
    value = candidate.maxLoadNs;
  else if (objective == Objective::Period)
    value = candidate.periodNs = periods.run(placement).ns();
  remember(value, placement.device);
  if (value < winner.value)
    winner = {candidate.name, std::move(placement), value, std::move(notes)};
}

std::vector<Assignment> Contest::best(size_t count) const {
  std::vector<Assignment> result;
  for (const auto &[value, device] : tried)
    if (result.size() < count)
      result.push_back(device);
  return result;
}

void Contest::considerAsIs(const std::string &name, const Assignment &device,
                           const std::vector<int64_t> &start) {
  Candidate candidate{name};
  Schedule schedule;
  std::vector<int64_t> priority;
  if (!start.empty())
    priority = toPriority(start);
  scheduler.run(device, {}, &schedule);
  if (schedule.makespan == never) {
    candidate.problem = "two devices that must talk have no link";
    candidates.push_back(std::move(candidate));
    return;
  }
  if (!priority.empty()) {
    Schedule other;
    Scheduler::Options scheduling;
    scheduling.priority = priority;
    if (scheduler.run(device, scheduling, &other) < schedule.makespan)
      schedule = std::move(other);
  }
  candidate.problem = overflow(schedulePeaks(model, device, schedule));
  if (candidate.problem.empty()) {
    keep(candidate, toPlacement(model, device, schedule), {});
  } else {
    candidate.makespanNs = schedule.makespan;
    candidate.maxLoadNs = maxLoad(model, device);
  }
  candidates.push_back(std::move(candidate));
}

/// What is above the memories, device by device; empty when nothing is.
std::string Contest::overflow(const std::vector<int64_t> &peaks) const {
  std::string text;
  for (int32_t d = 0; d < model.numDevices; ++d)
    if (peaks[d] > model.deviceMemory(d))
      text += fmt::format("{} {} of {} on {}", text.empty() ? "it needs" : ",",
                          memory::sizeText(peaks[d], " bytes"),
                          memory::sizeText(model.deviceMemory(d)),
                          problem.machine.devices[d].name);
  return text;
}

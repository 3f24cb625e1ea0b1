//===- Place.cpp - From a problem to a verified placement -------*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Baechi/Placement/Place.h"
#include "Memory.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <chrono>
#include <exception>

using namespace baechi::placement;

namespace {

/// One call of `place`.
class Session {
public:
  Session(const Problem &problem, const PlaceOptions &options,
          PlaceResult &result)
      : problem(problem), options(options), result(result), model(problem),
        scheduler(model) {}

  void run();

private:
  struct Solution {
    std::string name;
    Assignment device;
    Schedule schedule;
    int64_t value = never;
  };

  void consider(const std::string &name, const Assignment &device);
  void singleDevices();
  bool accept();

  const Problem &problem;
  const PlaceOptions &options;
  PlaceResult &result;
  Model model;
  Scheduler scheduler;
  Solution best;
};

void Session::consider(const std::string &name, const Assignment &device) {
  Candidate candidate{name};
  Schedule schedule;
  if (scheduleWithin(scheduler, model, device, schedule)) {
    candidate.feasible = true;
    candidate.makespanNs = schedule.makespan;
    candidate.maxLoadNs = maxLoad(model, device);
    int64_t value = options.objective == Objective::MaxLoad
                        ? candidate.maxLoadNs
                        : candidate.makespanNs;
    if (value < best.value)
      best = {name, device, std::move(schedule), value};
  }
  result.candidates.push_back(std::move(candidate));
}

void Session::singleDevices() {
  for (int32_t d = 0; d < model.numDevices; ++d) {
    bool all = true;
    for (Unit u = 0; u < model.numUnits; ++u)
      all &= model.mayUse(u, d);
    if (!all)
      continue;
    consider("single:" + problem.machine.devices[d].name,
             Assignment(model.numNodes, d));
    const Candidate &last = result.candidates.back();
    if (last.feasible &&
        (!result.singleDeviceNs || last.makespanNs < *result.singleDeviceNs))
      result.singleDeviceNs = last.makespanNs;
  }
}

bool Session::accept() {
  if (best.value == never) {
    result.error = "no single device can hold the graph";
    return false;
  }
  Placement placement = toPlacement(model, best.device, best.schedule);
  auto violations = verify(problem, placement);
  if (!violations.empty()) {
    result.error =
        "internal error: the placement is not valid: " + violations.front();
    return false;
  }
  result.winner = best.name;
  result.maxLoadNs = maxLoad(model, best.device);
  result.usage = usage(problem, placement);
  result.placement = std::move(placement);
  return true;
}

void Session::run() {
  result.operatorsBefore = result.operatorsAfter = model.numNodes;
  singleDevices();
  accept();
}

} // namespace

const std::vector<std::string> &baechi::placement::placerNames() {
  static const std::vector<std::string> names{"mtopo", "metf", "msct",
                                              "single"};
  return names;
}

const std::vector<std::string> &baechi::placement::groupingNames() {
  static const std::vector<std::string> names{"colocate", "coplace", "fuse"};
  return names;
}

PlaceResult baechi::placement::place(const Problem &problem,
                                     const PlaceOptions &options) {
  PlaceResult result;
  try {
    const auto &names = placerNames();
    if (std::find(names.begin(), names.end(), options.placer) == names.end()) {
      result.error = fmt::format("unknown placer '{}': the placers are {}",
                                 options.placer, fmt::join(names, ", "));
      return result;
    }
    if (auto errors = check(problem); !errors.empty()) {
      result.error = fmt::format("{}", fmt::join(errors, "\n"));
      return result;
    }
    Session(problem, options, result).run();
  } catch (const std::exception &e) {
    result.placement.reset();
    result.error = fmt::format("placement failed: {}", e.what());
  }
  return result;
}

//===- AssignmentEvaluator.cpp - What assignments are worth -----*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Baechi/Placement/Search/AssignmentEvaluator.h"
#include "Memory/Memory.h"
#include "Schedule/Evaluator.h"
#include "Schedule/Schedule.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

using namespace baechi::placement;

class AssignmentEvaluator::Implementation {
public:
  explicit Implementation(Problem given)
      : problem(std::move(given)), model(problem), evaluator(model),
        scheduler(model), unitDevice(model.numUnits) {}

  std::string run(std::span<const int32_t> device,
                  std::span<const int32_t> order, Schedule &schedule,
                  bool record);
  std::string fit(std::span<const int32_t> device,
                  std::span<const int32_t> order, Placement &placement);

  const Problem problem;
  const Model model;
  Evaluator evaluator;
  /// The last assignment has devices that must talk and cannot.
  bool isApart = false;

private:
  std::string check(std::span<const int32_t> device);
  std::string whyNot(Unit u, int32_t d) const;
  std::string cannotTalk() const;
  std::string setPriorities(std::span<const int32_t> order);

  Scheduler scheduler;
  std::vector<int32_t> unitDevice;
  Assignment nodeDevice;
  std::vector<int64_t> priority;
};

/// Why an operator of a unit cannot be on a device.
std::string AssignmentEvaluator::Implementation::whyNot(Unit u,
                                                        int32_t d) const {
  const Device &device = problem.machine.devices[d];
  for (int32_t i : model.members[u]) {
    const Operator &op = problem.graph.ops[i];
    if (op.pin && *op.pin != device.name)
      return fmt::format("{} is pinned to {} and cannot be on {}",
                         memory::nodeName(problem, i), *op.pin, device.name);
    if (model.timeOf(i, d) < 0)
      return fmt::format("{} has no time for the kind '{}' and cannot be on {}",
                         memory::nodeName(problem, i), device.kind,
                         device.name);
  }
  return fmt::format("{} cannot be on {}", memory::unitName(problem, model, u),
                     device.name);
}

/// Fills `unitDevice` and `nodeDevice`.
std::string
AssignmentEvaluator::Implementation::check(std::span<const int32_t> device) {
  if (device.size() != static_cast<size_t>(model.numNodes))
    return fmt::format(
        "the assignment has {} entries and the graph {} operators",
        device.size(), model.numNodes);
  std::fill(unitDevice.begin(), unitDevice.end(), -1);
  for (int32_t i = 0; i < model.numNodes; ++i) {
    int32_t d = device[i];
    if (d < 0 || d >= model.numDevices)
      return fmt::format("{}: there is no device {}: they are 0 to {}",
                         memory::nodeName(problem, i), d, model.numDevices - 1);
    int32_t &ofUnit = unitDevice[model.unit[i]];
    if (ofUnit == d)
      continue;
    const auto &devices = problem.machine.devices;
    if (ofUnit >= 0)
      return fmt::format("{} is on {} and others of {} are on {}: an operator "
                         "group needs one device",
                         memory::nodeName(problem, i), devices[d].name,
                         memory::unitName(problem, model, model.unit[i]),
                         devices[ofUnit].name);
    if (!model.mayUse(model.unit[i], d))
      return whyNot(model.unit[i], d);
    ofUnit = d;
  }
  nodeDevice.assign(device.begin(), device.end());
  return "";
}

std::string AssignmentEvaluator::Implementation::setPriorities(
    std::span<const int32_t> order) {
  priority.clear();
  if (order.empty())
    return "";
  if (order.size() != static_cast<size_t>(model.numNodes))
    return fmt::format("the order has {} entries and the graph {} operators",
                       order.size(), model.numNodes);
  priority.assign(model.numNodes, -1);
  for (size_t k = 0; k < order.size(); ++k) {
    int32_t i = order[k];
    if (i < 0 || i >= model.numNodes)
      return fmt::format("order[{}]: there is no operator {}: they are 0 to {}",
                         k, i, model.numNodes - 1);
    if (priority[i] >= 0)
      return fmt::format("order[{}]: {} stands in it twice", k,
                         memory::nodeName(problem, i));
    priority[i] = static_cast<int64_t>(order.size() - 1 - k);
  }
  return "";
}

/// Without \p record the schedule gets its makespan alone.
std::string
AssignmentEvaluator::Implementation::run(std::span<const int32_t> device,
                                         std::span<const int32_t> order,
                                         Schedule &schedule, bool record) {
  isApart = false;
  if (std::string error = check(device); !error.empty())
    return error;
  if (std::string error = setPriorities(order); !error.empty())
    return error;
  if (model.numNodes == 0) {
    schedule.makespan = 0;
    return "";
  }
  Schedule *into = record ? &schedule : nullptr;
  if (priority.empty()) {
    schedule.makespan = evaluator.run(unitDevice, {}, never, into);
  } else {
    Scheduler::Options options;
    options.priority = priority;
    schedule.makespan = scheduler.run(nodeDevice, options, into);
  }
  isApart = schedule.makespan == never;
  return isApart ? cannotTalk() : "";
}

/// Names an edge of the last assignment whose ends cannot talk.
std::string AssignmentEvaluator::Implementation::cannotTalk() const {
  for (const Edge &edge : problem.graph.edges) {
    int32_t from = nodeDevice[edge.from], to = nodeDevice[edge.to];
    bool isData = edge.output >= 0;
    if (from == to ||
        (isData ? model.reaches(from, to) : model.linked(from, to)))
      continue;
    const auto &devices = problem.machine.devices;
    return fmt::format(
        "{} on {} and {} on {}, which {}, have no link{}: add links or a "
        "link_default",
        memory::nodeName(problem, edge.from), devices[from].name,
        memory::nodeName(problem, edge.to), devices[to].name,
        isData ? "reads it" : "waits for it",
        isData ? ", and no other devices pass it on" : "");
  }
  return "";
}

std::string
AssignmentEvaluator::Implementation::fit(std::span<const int32_t> device,
                                         std::span<const int32_t> order,
                                         Placement &placement) {
  Schedule schedule;
  if (std::string error = run(device, order, schedule, true); !error.empty())
    return error;
  auto overflow = [&](const std::vector<int64_t> &peaks) {
    std::string text;
    for (int32_t d = 0; d < model.numDevices; ++d)
      if (peaks[d] > model.deviceMemory(d))
        text +=
            fmt::format("{} {} of {} on {}", text.empty() ? "it needs" : ",",
                        memory::sizeText(peaks[d], " bytes"),
                        memory::sizeText(model.deviceMemory(d)),
                        problem.machine.devices[d].name);
    return text;
  };
  if (model.numNodes > 0 &&
      !overflow(schedulePeaks(model, nodeDevice, schedule)).empty()) {
    std::vector<std::vector<int64_t>> priorities;
    if (!priority.empty())
      priorities.push_back(priority);
    if (!memory::scheduleWithin(scheduler, model, nodeDevice, schedule,
                                priorities))
      return "no order was found in which the assignment fits the memories: " +
             overflow(memory::leastPeaks(model, nodeDevice));
  }
  placement = toPlacement(model, nodeDevice, schedule);
  std::stable_sort(placement.transfers.begin(), placement.transfers.end(),
                   [](const Transfer &a, const Transfer &b) {
                     return a.startNs < b.startNs;
                   });
  return "";
}

AssignmentEvaluator::AssignmentEvaluator(
    std::unique_ptr<Implementation> implementation)
    : implementation(std::move(implementation)) {}
AssignmentEvaluator::~AssignmentEvaluator() = default;

std::unique_ptr<AssignmentEvaluator>
AssignmentEvaluator::create(Problem problem, std::string &error) {
  if (auto errors = check(problem); !errors.empty()) {
    error = fmt::format("{}", fmt::join(errors, "\n"));
    return nullptr;
  }
  return std::unique_ptr<AssignmentEvaluator>(new AssignmentEvaluator(
      std::make_unique<Implementation>(std::move(problem))));
}

const Problem &AssignmentEvaluator::problem() const {
  return implementation->problem;
}
const std::vector<int32_t> &AssignmentEvaluator::units() const {
  return implementation->model.unit;
}
int32_t AssignmentEvaluator::numUnits() const {
  return implementation->model.numUnits;
}
bool AssignmentEvaluator::mayUse(int32_t unit, int32_t device) const {
  return implementation->model.mayUse(unit, device);
}

std::string AssignmentEvaluator::makespan(std::span<const int32_t> device,
                                          std::span<const int32_t> order,
                                          int64_t &ns) {
  Schedule schedule;
  std::string error = implementation->run(device, order, schedule, false);
  ns = schedule.makespan;
  return error;
}

std::string AssignmentEvaluator::evaluate(std::span<const int32_t> device,
                                          std::span<const int32_t> order,
                                          Evaluation &result) {
  Schedule schedule;
  std::string error = implementation->run(device, order, schedule, true);
  const Model &model = implementation->model;
  result = {schedule.makespan, std::vector<int64_t>(model.numDevices, 0), ""};
  if (implementation->isApart) {
    result.problem = std::move(error);
    return "";
  }
  if (!error.empty())
    return error;
  if (model.numNodes > 0)
    result.peakBytes = schedulePeaks(
        model, Assignment(device.begin(), device.end()), schedule);
  return "";
}

std::string AssignmentEvaluator::schedule(std::span<const int32_t> device,
                                          std::span<const int32_t> order,
                                          Placement &placement) {
  return implementation->fit(device, order, placement);
}

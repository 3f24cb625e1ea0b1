//===- ResultText.cpp - A placement in words and numbers --------*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Baechi/Placement/Model/Nodes.h"
#include "Baechi/Report/Report.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <iterator>

using namespace baechi::placement;
using namespace baechi::report;

namespace {

double milliseconds(int64_t ns) { return static_cast<double>(ns) / 1e6; }
double mebibytes(int64_t bytes) { return static_cast<double>(bytes) / 1048576; }

/// How far the objective is above its lower bound; 0: proven optimal.
double gap(const PlaceOptions &options, const PlaceResult &result) {
  if (result.lowerBoundNs <= 0)
    return 0;
  return static_cast<double>(objectiveNs(result, options.objective)) /
             static_cast<double>(result.lowerBoundNs) -
         1;
}

/// Whether each device alone was tried: without a budget it is not.
bool triedSingle(const PlaceResult &result) {
  return std::any_of(result.phases.begin(), result.phases.end(),
                     [](const Phase &phase) { return phase.name == "single"; });
}

void addDevices(const Problem &problem, const PlaceResult &result,
                std::string &text) {
  auto out = std::back_inserter(text);
  int64_t makespan = result.placement->makespanNs;
  size_t width = 6;
  for (const Device &device : problem.machine.devices)
    width = std::max(width, device.name.size());
  fmt::format_to(out,
                 "\n{:<{}}  operators  busy %   peak MiB   of MiB   sent MiB\n",
                 "device", width);
  for (size_t d = 0; d < result.usage.size(); ++d) {
    const DeviceUsage &usage = result.usage[d];
    fmt::format_to(out,
                   "{:<{}}  {:>9}  {:>6.1f}  {:>9.1f}  {:>7.0f}  {:>9.1f}\n",
                   problem.machine.devices[d].name, width, usage.operators,
                   100.0 * static_cast<double>(usage.busyNs) /
                       static_cast<double>(std::max<int64_t>(makespan, 1)),
                   mebibytes(usage.peakBytes),
                   mebibytes(problem.machine.devices[d].memory),
                   mebibytes(usage.sentBytes));
  }
}

/// A row for all nodes that do as much: their devices' sums, mean and largest.
void addNodes(const Problem &problem, const PlaceResult &result,
              std::string &text) {
  struct Row {
    std::string first, last;
    size_t devices = 0, nodes = 0;
    int64_t operators = 0, busyNs = 0, peak = 0, memory = 0, sent = 0;
  };
  const Machine &machine = problem.machine;
  std::vector<Row> rows;
  for (size_t d = 0; d < result.usage.size(); ++d) {
    auto id = static_cast<int32_t>(d);
    if (machine.sideOf(id) != id)
      continue; // The next replica's.
    std::string name = nodeName(machine, id);
    if (rows.empty() || rows.back().last != name)
      rows.push_back({name, name, 0, 1});
    Row &row = rows.back();
    const DeviceUsage &usage = result.usage[d];
    ++row.devices;
    row.operators += usage.operators;
    row.busyNs += usage.busyNs;
    row.peak = std::max(row.peak, usage.peakBytes);
    row.memory = machine.devices[d].memory;
    row.sent += usage.sentBytes;
  }
  // Rows that follow each other grow together until they can be read.
  constexpr size_t fewRows = 16;
  size_t each = (rows.size() + fewRows - 1) / fewRows;
  std::vector<Row> shown;
  for (size_t k = 0; k < rows.size(); ++k) {
    if (k % each == 0) {
      shown.push_back(rows[k]);
      continue;
    }
    Row &row = shown.back();
    row.last = rows[k].last;
    ++row.nodes;
    row.devices += rows[k].devices;
    row.operators += rows[k].operators;
    row.busyNs += rows[k].busyNs;
    row.peak = std::max(row.peak, rows[k].peak);
    row.sent += rows[k].sent;
  }
  auto out = std::back_inserter(text);
  fmt::format_to(out,
                 "\n{:<12}  devices  operators  busy %   peak MiB   of "
                 "MiB   sent MiB\n",
                 "nodes");
  for (const Row &row : shown) {
    double all =
        static_cast<double>(row.devices) *
        static_cast<double>(std::max<int64_t>(result.placement->makespanNs, 1));
    fmt::format_to(
        out,
        "{:<12}  {:>7}  {:>9}  {:>6.1f}  {:>9.1f}  {:>7.0f}  "
        "{:>9.1f}\n",
        row.nodes == 1 ? row.first : row.first + " to " + row.last, row.devices,
        row.operators, 100.0 * static_cast<double>(row.busyNs) / all,
        mebibytes(row.peak), mebibytes(row.memory), mebibytes(row.sent));
  }
}

} // namespace

std::string baechi::report::reportText(const Problem &problem,
                                       const PlaceOptions &options,
                                       const PlaceResult &result) {
  std::string text;
  auto out = std::back_inserter(text);
  int64_t makespan = result.placement->makespanNs;
  fmt::format_to(out, "operators     {} ({} after grouping)\n",
                 result.operatorsBefore, result.operatorsAfter);
  fmt::format_to(out, "step          {:.3f} ms by {}\n", milliseconds(makespan),
                 result.winner);
  fmt::format_to(out, "max load      {:.3f} ms\n",
                 milliseconds(result.maxLoadNs));
  bool isOfPeriod = options.objective == Objective::Period;
  if (isOfPeriod)
    fmt::format_to(out, "period        {:.3f} ms predicted, {}\n",
                   milliseconds(result.periodNs),
                   result.cycleSteps == 1
                       ? "from one step that overlaps to the next"
                       : fmt::format("on average over {} steps that overlap",
                                     result.cycleSteps));
  fmt::format_to(out, "lower bound   {:.3f} ms of the {} ({}), gap {:.1f} %\n",
                 milliseconds(result.lowerBoundNs),
                 objectiveWord(options.objective), result.lowerBoundName,
                 100 * gap(options, result));
  if (result.singleDeviceNs)
    fmt::format_to(out, "one device    {:.3f} ms, speed-up {:.2f}\n",
                   milliseconds(*result.singleDeviceNs),
                   static_cast<double>(*result.singleDeviceNs) /
                       static_cast<double>(std::max<int64_t>(
                           isOfPeriod ? result.periodNs : makespan, 1)));
  else if (triedSingle(result))
    fmt::format_to(out, "one device    cannot hold the graph\n");
  // One by one as long as that can be read.
  constexpr size_t fewDevices = 16;
  if (problem.machine.nodes && result.usage.size() > fewDevices)
    addNodes(problem, result, text);
  else
    addDevices(problem, result, text);
  if (!result.grouping.empty())
    fmt::format_to(out, "\n{:<10} {:>18}  {:>18}  largest: work %  memory %\n",
                   "grouping", "operators", "groups");
  for (const GroupingStep &step : result.grouping)
    fmt::format_to(
        out, "{:<10} {:>18}  {:>18}  {:>15.1f}  {:>8.1f}\n", step.name,
        fmt::format("{} -> {}", step.operatorsBefore, step.operatorsAfter),
        fmt::format("{} -> {}", step.groupsBefore, step.groupsAfter),
        100 * step.largestWork, 100 * step.largestMemory);
  fmt::format_to(out, "\ncandidates\n");
  for (const Candidate &candidate : result.candidates) {
    if (candidate.feasible)
      fmt::format_to(
          out, "  {:<20} {:>12.3f} ms   {} {:>12.3f} ms\n", candidate.name,
          milliseconds(candidate.makespanNs),
          isOfPeriod ? "period" : "max load",
          milliseconds(isOfPeriod ? candidate.periodNs : candidate.maxLoadNs));
    else if (candidate.makespanNs > 0)
      fmt::format_to(out, "  {:<20} {:>12.3f} ms   not valid: {}\n",
                     candidate.name, milliseconds(candidate.makespanNs),
                     candidate.problem);
    else
      fmt::format_to(out, "  {:<20} {:>12}      not valid: {}\n",
                     candidate.name, "-", candidate.problem);
  }
  fmt::format_to(out, "\nphases\n");
  for (const Phase &phase : result.phases)
    fmt::format_to(out, "  {:<20} {:>8.3f} s\n", phase.name, phase.seconds);
  for (const std::string &note : result.notes)
    fmt::format_to(out, "note: {}\n", note);
  return text;
}

std::string baechi::report::reportJson(const Problem &problem,
                                       const PlaceOptions &options,
                                       const PlaceResult &result,
                                       const std::string &explanations) {
  using Json = nlohmann::ordered_json;
  Json root{{"format", "baechi-placement-report"},
            {"version", 1},
            {"placer", options.placer},
            {"grouping", options.grouping},
            {"objective", objectiveText(options.objective)},
            {"winner", result.winner},
            {"makespan_ns", result.placement->makespanNs},
            {"max_load_ns", result.maxLoadNs},
            {"lower_bound_ns", result.lowerBoundNs},
            {"lower_bound", result.lowerBoundName},
            {"gap", gap(options, result)},
            {"single_device_ns", result.singleDeviceNs
                                     ? Json(*result.singleDeviceNs)
                                     : Json(nullptr)},
            {"operators_before", result.operatorsBefore},
            {"operators_after", result.operatorsAfter},
            {"notes", result.notes}};
  bool isOfPeriod = options.objective == Objective::Period;
  if (isOfPeriod) {
    root["period_ns"] = result.periodNs;
    root["period"] = {{"ns", result.cycleNs}, {"steps", result.cycleSteps}};
  }
  auto &devices = root["devices"] = Json::array();
  for (size_t d = 0; d < result.usage.size(); ++d) {
    const DeviceUsage &usage = result.usage[d];
    devices.push_back({{"name", problem.machine.devices[d].name},
                       {"operators", usage.operators},
                       {"busy_ns", usage.busyNs},
                       {"peak_bytes", usage.peakBytes},
                       {"peak_at_ns", usage.peakAtNs},
                       {"resident_bytes", usage.residentBytes},
                       {"memory_bytes", problem.machine.devices[d].memory},
                       {"sent_bytes", usage.sentBytes}});
  }
  auto &steps = root["grouping_steps"] = Json::array();
  for (const GroupingStep &step : result.grouping)
    steps.push_back({{"name", step.name},
                     {"operators_before", step.operatorsBefore},
                     {"operators_after", step.operatorsAfter},
                     {"groups_before", step.groupsBefore},
                     {"groups_after", step.groupsAfter},
                     {"largest_work", step.largestWork},
                     {"largest_memory", step.largestMemory}});
  auto &candidates = root["candidates"] = Json::array();
  for (const Candidate &candidate : result.candidates) {
    Json entry{{"name", candidate.name}, {"feasible", candidate.feasible}};
    if (candidate.feasible || candidate.makespanNs > 0) {
      entry["makespan_ns"] = candidate.makespanNs;
      entry["max_load_ns"] = candidate.maxLoadNs;
      if (isOfPeriod && candidate.feasible)
        entry["period_ns"] = candidate.periodNs;
    }
    if (!candidate.feasible)
      entry["problem"] = candidate.problem;
    candidates.push_back(std::move(entry));
  }
  auto &phases = root["phases"] = Json::array();
  for (const Phase &phase : result.phases)
    phases.push_back({{"name", phase.name}, {"seconds", phase.seconds}});
  if (!explanations.empty())
    root["explanations"] = Json::parse(explanations);
  return root.dump(1) + "\n";
}

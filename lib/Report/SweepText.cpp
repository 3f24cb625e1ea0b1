//===- SweepText.cpp - The table of other machines --------------*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Baechi/Report/Report.h"
#include "Table.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <iterator>

using namespace baechi::placement;
using namespace baechi::report;

namespace {

double milliseconds(int64_t ns) { return static_cast<double>(ns) / 1e6; }

/// A number of MiB; small ones keep three digits.
std::string mebibytes(int64_t bytes) {
  double value = static_cast<double>(bytes) / 1048576;
  return value > 0 && value < 1 ? fmt::format("{:.3g}", value)
                                : fmt::format("{:.1f}", value);
}

/// The first clause of a long message.
std::string shortened(const std::string &message) {
  size_t end = message.find("; ");
  return end == std::string::npos ? message : message.substr(0, end) + "; ...";
}

int64_t valueOf(const Sweep &sweep, const SweepPoint &point) {
  return sweep.objective == Objective::MaxLoad ? point.maxLoadNs
                                               : point.makespanNs;
}

std::string machineText(const SweepPoint &point) {
  return fmt::format("{} x {} MiB, links x{}", point.devices,
                     mebibytes(point.memoryBytes), point.linkSpeed);
}

std::string byText(const Sweep &sweep, const SweepPoint &point) {
  if (!point.valid)
    return "does not fit";
  if (point.takenFrom < 0)
    return point.winner;
  return "as " + machineText(sweep.points[point.takenFrom]);
}

std::string pointsTable(const Sweep &sweep) {
  bool maxLoad = sweep.objective == Objective::MaxLoad;
  Table table({{"devices"},
               {"memory MiB"},
               {"links"},
               {maxLoad ? "max load ms" : "step ms"},
               {"speed-up"},
               {"bound ms"},
               {"gap %"},
               {"peak MiB"},
               {"seconds"},
               {"by", Table::Left}});
  for (const SweepPoint &point : sweep.points) {
    auto known = [&](bool is, std::string text) {
      return is ? std::move(text) : std::string("-");
    };
    int64_t value = valueOf(sweep, point);
    table.add(
        {fmt::format("{}", point.devices), mebibytes(point.memoryBytes),
         fmt::format("x{}", point.linkSpeed),
         known(point.valid, fmt::format("{:.3f}", milliseconds(value))),
         known(point.valid && sweep.oneDeviceNs > 0,
               fmt::format("{:.2f}", static_cast<double>(sweep.oneDeviceNs) /
                                         static_cast<double>(
                                             std::max<int64_t>(value, 1)))),
         known(point.lowerBoundNs > 0,
               fmt::format("{:.3f}", milliseconds(point.lowerBoundNs))),
         known(point.valid, fmt::format("{:.1f}", 100 * point.gap)),
         known(point.valid, mebibytes(point.peakBytes)),
         fmt::format("{:.2f}", point.seconds), byText(sweep, point)});
  }
  return table.text();
}

std::string leastMemoryTable(const Sweep &sweep) {
  Table table({{"devices"},
               {"found MiB"},
               {"proven MiB"},
               {"of one device %"},
               {"step ms"},
               {"seconds"}});
  for (const LeastMemory &least : sweep.leastMemory) {
    auto known = [&](bool is, std::string text) {
      return is ? std::move(text) : std::string("-");
    };
    int64_t bytes = least.bytes.value_or(0);
    bool found = least.bytes.has_value();
    table.add(
        {fmt::format("{}", least.devices), known(found, mebibytes(bytes)),
         mebibytes(least.provenBytes),
         known(found && sweep.oneDeviceBytes > 0,
               fmt::format("{:.1f}", 100 * static_cast<double>(bytes) /
                                         static_cast<double>(std::max<int64_t>(
                                             sweep.oneDeviceBytes, 1)))),
         known(found, fmt::format("{:.3f}", milliseconds(least.makespanNs))),
         fmt::format("{:.2f}", least.seconds)});
  }
  return table.text();
}

} // namespace

std::string baechi::report::sweepText(const Sweep &sweep) {
  std::string text = pointsTable(sweep);
  auto out = std::back_inserter(text);
  if (!sweep.leastMemory.empty())
    fmt::format_to(out,
                   "\nthe least memory a device must have: the least for which "
                   "a placement was found, and what none can do without\n{}",
                   leastMemoryTable(sweep));
  text += "\n";
  if (sweep.oneDeviceNs > 0)
    fmt::format_to(out,
                   "one device ({}) with all the memory it needs: {:.3f} "
                   "ms, {} MiB\n",
                   sweep.pattern, milliseconds(sweep.oneDeviceNs),
                   mebibytes(sweep.oneDeviceBytes));
  for (const std::string &note : sweep.notes)
    fmt::format_to(out, "note: {}\n", note);
  // The reasons, each once, with the first machine that has it; in full in the
  // report.
  std::vector<std::string> said;
  auto say = [&](const std::string &what, const std::string &problem) {
    if (problem.empty() ||
        std::find(said.begin(), said.end(), problem) != said.end())
      return;
    said.push_back(problem);
    fmt::format_to(out, "{}: {}\n", what, shortened(problem));
  };
  for (const SweepPoint &point : sweep.points)
    if (!point.valid)
      say(machineText(point), point.problem);
  for (const LeastMemory &least : sweep.leastMemory)
    say(fmt::format("least memory of {}", least.devices), least.problem);
  return text;
}

std::string baechi::report::sweepJson(const Sweep &sweep) {
  using Json = nlohmann::ordered_json;
  auto orNull = [](bool known, auto value) {
    return known ? Json(value) : Json(nullptr);
  };
  Json root{{"format", "baechi-sweep"},
            {"version", 1},
            {"objective",
             sweep.objective == Objective::MaxLoad ? "max-load" : "makespan"},
            {"pattern", sweep.pattern},
            {"one_device_ns", orNull(sweep.oneDeviceNs > 0, sweep.oneDeviceNs)},
            {"one_device_bytes",
             orNull(sweep.oneDeviceBytes > 0, sweep.oneDeviceBytes)},
            {"notes", sweep.notes}};
  auto &points = root["points"] = Json::array();
  for (const SweepPoint &point : sweep.points) {
    Json entry{
        {"devices", point.devices},
        {"memory_bytes", point.memoryBytes},
        {"link_speed", point.linkSpeed},
        {"valid", point.valid},
        {"lower_bound_ns", orNull(point.lowerBoundNs > 0, point.lowerBoundNs)},
        {"seconds", point.seconds}};
    if (point.valid) {
      entry["makespan_ns"] = point.makespanNs;
      entry["max_load_ns"] = point.maxLoadNs;
      entry["gap"] = point.gap;
      entry["peak_bytes"] = point.peakBytes;
      entry["winner"] = point.winner;
      entry["taken_from"] = orNull(point.takenFrom >= 0, point.takenFrom);
    } else {
      entry["problem"] = point.problem;
    }
    points.push_back(std::move(entry));
  }
  auto &least = root["least_memory"] = Json::array();
  for (const LeastMemory &entry : sweep.leastMemory) {
    least.push_back(
        {{"devices", entry.devices},
         {"bytes", entry.bytes ? Json(*entry.bytes) : Json(nullptr)},
         {"proven_bytes", entry.provenBytes},
         {"makespan_ns", orNull(entry.bytes.has_value(), entry.makespanNs)},
         {"tried", entry.tried},
         {"seconds", entry.seconds}});
    if (!entry.problem.empty())
      least.back()["problem"] = entry.problem;
  }
  return root.dump(1) + "\n";
}

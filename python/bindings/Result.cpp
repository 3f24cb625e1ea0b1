//===- Result.cpp - A placement as arrays and texts -------------*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "Bindings.h"

#include "Baechi/Placement/Io/Files.h"
#include "Baechi/Placement/Study/Explain.h"
#include "Baechi/Report/Draw.h"
#include "Baechi/Report/Page.h"
#include "Baechi/Report/Report.h"

#include <algorithm>

using namespace baechi;
using namespace baechi::python;

namespace {

const placement::Placement &placementOf(const Result &self) {
  return *self.result.placement;
}

/// Per operator, on the device that it is placed on.
std::vector<int64_t> finishes(const Result &self) {
  const placement::Problem &problem = *self.of.problem;
  const placement::Placement &placement = placementOf(self);
  std::vector<int64_t> ends = placement.startNs;
  for (size_t i = 0; i < ends.size(); ++i) {
    const std::string &kind = problem.machine.devices[placement.device[i]].kind;
    const auto &times = problem.graph.ops[i].timeNs;
    auto it = std::find_if(times.begin(), times.end(), [&](const auto &time) {
      return time.first == kind;
    });
    if (it == times.end())
      it = std::find_if(times.begin(), times.end(),
                        [](const auto &time) { return time.first.empty(); });
    if (it != times.end())
      ends[i] += it->second;
  }
  return ends;
}

template <typename T, typename Get>
nb::ndarray<nb::numpy, T> column(const Result &self, Get get) {
  std::vector<T> values;
  for (const placement::Transfer &transfer : placementOf(self).transfers)
    values.push_back(get(transfer));
  return toArray(std::move(values));
}

nb::dict transfers(const Result &self) {
  using placement::Transfer;
  const auto &ops = self.of.problem->graph.ops;
  nb::dict found;
  found["operator"] = column<int32_t>(self, [](auto &t) { return t.op; });
  found["output"] = column<int32_t>(self, [](auto &t) { return t.output; });
  found["source"] = column<int32_t>(self, [](auto &t) { return t.from; });
  found["target"] = column<int32_t>(self, [](auto &t) { return t.to; });
  found["start"] = column<int64_t>(self, [](auto &t) { return t.startNs; });
  found["finish"] = column<int64_t>(self, [](auto &t) { return t.endNs; });
  found["bytes"] = column<int64_t>(self, [&](const Transfer &t) {
    return ops[t.op].outputs[t.output].bytes;
  });
  return found;
}

/// Per device: times and the bytes held from each on.
nb::list memory(const Result &self) {
  nb::list devices;
  for (const auto &levels :
       placement::memoryOverTime(*self.of.problem, placementOf(self))) {
    std::vector<int64_t> at, bytes;
    for (const placement::MemoryLevel &level : levels) {
      at.push_back(level.atNs);
      bytes.push_back(level.bytes);
    }
    devices.append(
        nb::make_tuple(toArray(std::move(at)), toArray(std::move(bytes))));
  }
  return devices;
}

std::string page(const Result &self) {
  report::PageSummary summary;
  summary.model = self.of.graphName;
  summary.machine = self.of.machineName;
  summary.placer = self.options.placer;
  summary.winner = self.result.winner;
  summary.objective = self.options.objective;
  summary.lowerBoundNs = self.result.lowerBoundNs;
  summary.lowerBoundName = self.result.lowerBoundName;
  summary.maxLoadNs = self.result.maxLoadNs;
  summary.periodNs = self.result.periodNs;
  summary.singleDeviceNs = self.result.singleDeviceNs;
  summary.notes = self.result.notes;
  return report::formatPage(*self.of.problem, placementOf(self), summary);
}

/// For a person, and as JSON.
std::tuple<std::string, std::string>
explain(const Result &self, const std::vector<std::string> &patterns) {
  report::Explanations found;
  if (self.options.objective == placement::Objective::Period)
    throw PlacementError("reasons are of makespan or max-load, not of the "
                         "period of steps that overlap");
  std::string error;
  {
    nb::gil_scoped_release unlocked;
    std::vector<int32_t> ops;
    for (const std::string &pattern : patterns)
      if (error.empty())
        error = placement::findOperators(self.of.problem->graph, pattern, ops);
    if (error.empty())
      found = report::explainAll(*self.of.problem, placementOf(self),
                                 self.options.objective, patterns);
  }
  raiseUnlessEmpty(error);
  return {found.text, found.json};
}

std::string placementFile(const Result &self) {
  std::string text;
  bool ofMakespan = self.options.objective == placement::Objective::Makespan;
  raiseUnlessEmpty(placement::formatPlacement(
      *self.of.problem, placementOf(self),
      {self.result.winner, ofMakespan ? self.result.lowerBoundNs : 0}, text));
  return text;
}

} // namespace

void python::defineResult(nb::module_ &m) {
  nb::class_<Result>(m, "Result", "A valid placement.")
      .def_ro("problem", &Result::of)
      .def_prop_ro(
          "device",
          [](const Result &self) { return toArray(placementOf(self).device); },
          nb::rv_policy::automatic)
      .def_prop_ro(
          "start",
          [](const Result &self) { return toArray(placementOf(self).startNs); },
          nb::rv_policy::automatic)
      .def_prop_ro(
          "finish", [](const Result &self) { return toArray(finishes(self)); },
          nb::rv_policy::automatic)
      .def_prop_ro("transfers", &transfers, nb::rv_policy::automatic)
      .def_prop_ro("memory", &memory, nb::rv_policy::automatic)
      .def("report",
           [](const Result &self) {
             return report::reportJson(*self.of.problem, self.options,
                                       self.result);
           })
      .def("text",
           [](const Result &self) {
             return report::reportText(*self.of.problem, self.options,
                                       self.result);
           })
      .def("explain", &explain, "patterns"_a)
      .def("page", &page)
      .def("trace",
           [](const Result &self) {
             return report::formatTimeline(*self.of.problem, placementOf(self));
           })
      .def("dot",
           [](const Result &self) {
             return report::formatDot(*self.of.problem, placementOf(self));
           })
      .def("placement_file", &placementFile)
      .def("__getstate__", [](const Result &self) { return stateOf(self); })
      .def("__setstate__", [](Result &self, const nb::tuple &state) {
        new (&self) Result(resultOf(state));
      });
}

//===- ExplanationsText.cpp - Explanations of operators ---------*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Baechi/Placement/Study/Explain.h"
#include "Baechi/Report/Report.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>

using namespace baechi::placement;
using namespace baechi::report;
using Json = nlohmann::ordered_json;

namespace {

/// Of the operators that a pattern names, so many are explained one by one.
constexpr size_t shown = 10;

const char *limitName(Limit limit) {
  switch (limit) {
  case Limit::None:
    return "none";
  case Limit::Kind:
    return "kind";
  case Limit::Pin:
    return "pin";
  case Limit::Group:
    return "group";
  case Limit::Link:
    return "link";
  case Limit::Memory:
    return "memory";
  }
  return "none";
}

template <typename T> Json orNull(const std::optional<T> &value) {
  return value ? Json(*value) : Json(nullptr);
}

Json toJson(const Problem &problem, const DeviceChoice &choice) {
  const auto &devices = problem.machine.devices;
  const auto &ops = problem.graph.ops;
  Json json{{"device", devices[choice.device].name},
            {"excluded_by", limitName(choice.limit)}};
  if (choice.limit != Limit::None)
    json["reason"] = choice.reason;
  if (choice.limit != Limit::None && choice.limit != Limit::Memory)
    return json;
  json["time_ns"] = choice.timeNs;
  json["earliest_start_ns"] = choice.startNs;
  json["arrival_ns"] = choice.arrivalNs;
  if (choice.lastOperand >= 0) {
    json["last_operand"] = ops[choice.lastOperand].name;
    json["last_output"] = choice.lastOutput;
    json["last_from"] = devices[choice.lastFrom].name;
  }
  if (choice.occupant >= 0)
    json["busy_with"] = ops[choice.occupant].name;
  json["needed_bytes"] = choice.neededBytes;
  json["free_bytes"] = choice.freeBytes;
  json["makespan_ns"] = orNull(choice.makespanNs);
  json["max_load_ns"] = orNull(choice.maxLoadNs);
  return json;
}

Json toJson(const Problem &problem, const Explanation &e) {
  Json json{{"operator", e.op},
            {"name", problem.graph.ops[e.op].name},
            {"device", problem.machine.devices[e.device].name},
            {"start_ns", e.startNs},
            {"time_ns", e.timeNs},
            {"group_size", e.groupSize},
            {"critical", e.critical},
            {"why", e.why}};
  auto &devices = json["devices"] = Json::array();
  for (const DeviceChoice &choice : e.devices)
    devices.push_back(toJson(problem, choice));
  return json;
}

Json toJson(const Problem &problem, const SetExplanation &e) {
  Json json = Json::array();
  for (size_t d = 0; d < e.devices.size(); ++d) {
    const SetExplanation::OnDevice &choice = e.devices[d];
    json.push_back({{"device", problem.machine.devices[d].name},
                    {"operators", choice.operators},
                    {"time_ns", choice.timeNs},
                    {"excluded_by", limitName(choice.limit)},
                    {"makespan_ns", orNull(choice.makespanNs)},
                    {"max_load_ns", orNull(choice.maxLoadNs)}});
  }
  return json;
}

} // namespace

Explanations
baechi::report::explainAll(const Problem &problem, const Placement &placement,
                           Objective objective,
                           const std::vector<std::string> &patterns) {
  ExplainOptions options;
  options.objective = objective;
  Explainer explainer(problem, placement, options);
  Explanations result;
  Json list = Json::array();
  for (const std::string &pattern : patterns) {
    std::vector<int32_t> ops;
    findOperators(problem.graph, pattern, ops);
    Json entry{{"pattern", pattern}, {"matches", ops.size()}};
    if (!result.text.empty())
      result.text += "\n";
    if (ops.size() > 1) {
      SetExplanation all = explainer.explainSet(ops);
      result.text +=
          fmt::format("'{}': {}\n", pattern, explanationText(problem, all));
      entry["together"] = toJson(problem, all);
    }
    auto &operators = entry["operators"] = Json::array();
    for (size_t k = 0; k < std::min(ops.size(), shown); ++k) {
      Explanation one = explainer.explain(ops[k]);
      result.text += (k ? "\n" : "") + explanationText(problem, one);
      operators.push_back(toJson(problem, one));
    }
    if (ops.size() > shown)
      result.text +=
          fmt::format("'{}': {} more operators; ask for fewer to see "
                      "each\n",
                      pattern, ops.size() - shown);
    list.push_back(std::move(entry));
  }
  result.json = list.dump(1);
  return result;
}

//===- PlacementJson.cpp - Placement files ----------------------*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Baechi/Placement/Io/Files.h"
#include "Baechi/Support/Json.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <tuple>
#include <unordered_set>

using namespace baechi::placement;
namespace json = baechi::support::json;
using json::Cursor;

namespace {

class PlacementReader {
public:
  PlacementReader(const Problem &problem, Placement &placement)
      : problem(problem), placement(placement) {
    const auto &devices = problem.machine.devices;
    for (size_t d = 0; d < devices.size(); ++d)
      index.emplace(devices[d].name, static_cast<int32_t>(d));
    placement.device.assign(problem.graph.ops.size(), -1);
    placement.startNs.assign(problem.graph.ops.size(), 0);
  }

  void readOperator(const Cursor &at) {
    int32_t id = at["id"].index();
    size_t n = problem.graph.ops.size();
    if (id < 0 || static_cast<size_t>(id) >= n)
      at["id"].fail(
          fmt::format("is {}, but the graph has {} operators", id, n));
    if (placement.device[id] >= 0)
      at["id"].fail(fmt::format("operator {} is placed twice", id));
    const std::string &called = problem.graph.ops[id].name;
    if (auto name = at.find("name"); name && name->string() != called)
      name->fail(fmt::format("operator {} of the graph is called '{}': the "
                             "placement is of another graph",
                             id, called));
    placement.device[id] = device(at["device"]);
    placement.startNs[id] = at["start_ns"].integer();
  }

  void readTransfer(const Cursor &at) {
    placement.transfers.push_back(
        {at["op"].index(), at["output"].index(), device(at["from"]),
         device(at["to"]), at["start_ns"].integer(), at["end_ns"].integer()});
  }

  void finish(const Cursor &root, PlacementInfo &info) {
    if (auto algorithm = root.find("algorithm"))
      info.algorithm = algorithm->string();
    if (auto bound = root.find("lower_bound_ns"))
      info.lowerBoundNs = bound->integer();
    root["ops"].expect(json::Kind::Array);
    for (size_t i = 0; i < placement.device.size(); ++i)
      if (placement.device[i] < 0)
        root["ops"].fail(fmt::format("operator {} '{}' is not placed", i,
                                     problem.graph.ops[i].name));
    // Of those that start together the order of the file counts: what takes no
    // time may be passed on at once.
    std::stable_sort(placement.transfers.begin(), placement.transfers.end(),
                     [](const Transfer &a, const Transfer &b) {
                       return a.startNs < b.startNs;
                     });
    placement.makespanNs = root["makespan_ns"].integer();
  }

private:
  int32_t device(const Cursor &at) const {
    std::string name = at.string();
    auto it = index.find(name);
    if (it == index.end())
      at.fail(fmt::format("'{}' is not a device of the machine", name));
    return it->second;
  }

  const Problem &problem;
  Placement &placement;
  std::map<std::string, int32_t> index;
};

} // namespace

std::string baechi::placement::parsePlacement(std::string_view text,
                                              const std::string &name,
                                              const Problem &problem,
                                              Placement &placement,
                                              PlacementInfo *info) {
  placement = {};
  PlacementInfo ignored;
  PlacementReader reader(problem, placement);
  return json::parse(
      text, name, "baechi-placement",
      {{"ops", [&](size_t, const Cursor &at) { reader.readOperator(at); }},
       {"transfers",
        [&](size_t, const Cursor &at) { reader.readTransfer(at); }}},
      [&](const Cursor &root) { reader.finish(root, info ? *info : ignored); });
}

std::string baechi::placement::readPlacement(const std::string &path,
                                             const Problem &problem,
                                             Placement &placement,
                                             PlacementInfo *info) {
  std::string text;
  std::string error = readTextFile(path, text);
  return error.empty() ? parsePlacement(text, path, problem, placement, info)
                       : error;
}

std::string baechi::placement::readReplicas(const std::string &path,
                                            PlacementInfo &info) {
  std::string text;
  if (std::string error = readTextFile(path, text); !error.empty())
    return error;
  auto passOver = [](size_t, const Cursor &) {};
  return json::parse(
      text, path, "baechi-placement",
      {{"ops", passOver}, {"transfers", passOver}, {"choices", passOver}},
      [&](const Cursor &root) {
        auto at = root.find("replicas");
        if (!at)
          return;
        at->onlyKeys({"count", "devices"});
        info.replicas = (*at)["count"].naturalIndex();
        info.devices = (*at)["devices"].naturalIndex();
      });
}

std::string
baechi::placement::parsePlacementByName(std::string_view text,
                                        const std::string &name,
                                        std::vector<NamedDevice> &operators) {
  operators.clear();
  std::unordered_set<std::string> seen;
  auto readOperator = [&](size_t, const Cursor &at) {
    auto called = at.find("name");
    if (!called)
      at.fail("has no name, and so cannot be found in another program: write "
              "the placement again with this version");
    if (!seen.insert(called->string()).second)
      called->fail("is the name of two operators");
    operators.push_back({called->string(), at["device"].string()});
  };
  return json::parse(
      text, name, "baechi-placement",
      {{"ops", readOperator}, {"transfers", [](size_t, const Cursor &) {}}},
      [](const Cursor &root) { root["ops"].expect(json::Kind::Array); });
}

std::string
baechi::placement::readPlacementByName(const std::string &path,
                                       std::vector<NamedDevice> &operators) {
  std::string text;
  std::string error = readTextFile(path, text);
  return error.empty() ? parsePlacementByName(text, path, operators) : error;
}

std::string baechi::placement::formatPlacement(const Problem &problem,
                                               const Placement &placement,
                                               const PlacementInfo &info,
                                               std::string &text) try {
  std::vector<std::string> names;
  for (const Device &device : problem.machine.devices)
    json::appendQuoted(names.emplace_back(), device.name);
  text = R"({"format":"baechi-placement","version":1,"algorithm":)";
  json::appendQuoted(text, info.algorithm);
  auto out = std::back_inserter(text);
  fmt::format_to(out, R"(,"makespan_ns":{},"lower_bound_ns":{})",
                 placement.makespanNs, info.lowerBoundNs);
  const char *separator = "";
  if (info.devices > 0)
    fmt::format_to(out, R"(,"replicas":{{"count":{},"devices":{}}})",
                   info.replicas, info.devices);
  if (!info.choices.empty()) {
    text += ",\"choices\":[";
    for (const NamedAlternative &choice : info.choices) {
      fmt::format_to(out, R"({}{{"id":{},"alternative":)", separator,
                     choice.op);
      json::appendQuoted(text, choice.alternative);
      text += '}';
      separator = ",";
    }
    text += ']';
  }
  text += ",\"ops\":[";
  separator = "";
  for (size_t i = 0; i < placement.device.size(); ++i) {
    fmt::format_to(out, R"({}{{"id":{},)", separator, i);
    if (const std::string &name = problem.graph.ops.at(i).name; !name.empty()) {
      text += "\"name\":";
      json::appendQuoted(text, name);
      text += ',';
    }
    fmt::format_to(out, R"("device":{},"start_ns":{}}})",
                   names.at(placement.device[i]), placement.startNs.at(i));
    separator = ",";
  }
  text += "],\"transfers\":[";
  separator = "";
  for (const Transfer &t : placement.transfers) {
    fmt::format_to(out,
                   R"({}{{"op":{},"output":{},"from":{},"to":{},)"
                   R"("start_ns":{},"end_ns":{}}})",
                   separator, t.op, t.output, names.at(t.from), names.at(t.to),
                   t.startNs, t.endNs);
    separator = ",";
  }
  text += "]}\n";
  return "";
} catch (const std::exception &e) {
  return fmt::format("cannot write: {}", e.what());
}

std::string baechi::placement::writePlacement(const std::string &path,
                                              const Problem &problem,
                                              const Placement &placement,
                                              const PlacementInfo &info) {
  std::string text;
  std::string error = formatPlacement(problem, placement, info, text);
  return error.empty() ? writeTextFile(path, text) : path + ": " + error;
}

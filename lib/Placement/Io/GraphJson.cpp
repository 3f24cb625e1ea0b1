//===- GraphJson.cpp - Graph files ------------------------------*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Baechi/Placement/Io.h"
#include "Io/Json.h"

#include <fmt/format.h>

using namespace baechi::placement;
using baechi::placement::json::Cursor;

namespace {

Output readOutput(const Cursor &at) {
  if (!at.isObject())
    return Output(at.integer());
  at.onlyKeys({"bytes", "memory", "copy"});
  Output output(at["bytes"].integer());
  if (auto memory = at.find("memory"))
    output.memory = memory->integer();
  if (auto copy = at.find("copy"))
    output.copy = copy->integer();
  return output;
}

Operator readOperator(size_t position, const Cursor &entry) {
  Operator op;
  op.name = entry["name"].string();
  Cursor at = entry.named(op.name);
  at.onlyKeys({"id", "name", "time_ns", "outputs", "scratch", "resident",
               "group", "pin", "backward", "forward", "result"});
  if (int64_t id = at["id"].integer(); id != static_cast<int64_t>(position))
    at["id"].fail(
        fmt::format("is {}, but must be its position {}", id, position));
  Cursor time = at["time_ns"];
  if (time.isObject())
    time.forEachMember([&](const std::string &kind, const Cursor &ns) {
      op.timeNs.emplace_back(kind, ns.integer());
    });
  else
    op.timeNs.emplace_back("", time.integer());
  if (auto outputs = at.find("outputs"))
    outputs->forEach([&](size_t, const Cursor &output) {
      op.outputs.push_back(readOutput(output));
    });
  if (auto scratch = at.find("scratch"))
    op.scratch = scratch->integer();
  if (auto resident = at.find("resident"))
    op.resident = resident->integer();
  if (auto group = at.find("group"))
    op.group = group->string();
  if (auto pin = at.find("pin"))
    op.pin = pin->string();
  if (auto backward = at.find("backward"))
    op.backward = backward->boolean();
  if (auto forward = at.find("forward"))
    op.forward = forward->index();
  if (auto result = at.find("result"))
    op.result = result->boolean();
  return op;
}

Edge readEdge(const Cursor &at) {
  at.onlyKeys({"from", "output", "to"});
  Edge edge;
  edge.from = at["from"].index();
  edge.to = at["to"].index();
  if (auto output = at.find("output")) {
    edge.output = output->index();
    if (edge.output < 0)
      output->fail("must be 0 or more; leave it out for a control edge");
  }
  return edge;
}

nlohmann::ordered_json toJson(const Output &output) {
  if (output.memory == output.bytes && output.copy == output.bytes)
    return output.bytes;
  return {{"bytes", output.bytes},
          {"memory", output.memory},
          {"copy", output.copy}};
}

/// Leaves out what has its default.
nlohmann::ordered_json toJson(size_t id, const Operator &op) {
  nlohmann::ordered_json entry{{"id", id}, {"name", op.name}};
  if (op.timeNs.size() == 1 && op.timeNs.front().first.empty()) {
    entry["time_ns"] = op.timeNs.front().second;
  } else {
    auto &times = entry["time_ns"] = nlohmann::ordered_json::object();
    for (const auto &[kind, ns] : op.timeNs)
      times[kind] = ns;
  }
  auto &outputs = entry["outputs"] = nlohmann::ordered_json::array();
  for (const Output &output : op.outputs)
    outputs.push_back(toJson(output));
  if (op.scratch)
    entry["scratch"] = op.scratch;
  if (op.resident)
    entry["resident"] = op.resident;
  if (op.group)
    entry["group"] = *op.group;
  if (op.pin)
    entry["pin"] = *op.pin;
  if (op.backward)
    entry["backward"] = true;
  if (op.forward)
    entry["forward"] = *op.forward;
  if (op.result)
    entry["result"] = true;
  return entry;
}

} // namespace

std::string baechi::placement::parseGraph(std::string_view text,
                                          const std::string &name,
                                          Graph &graph) {
  graph = {};
  return json::parse(text, name, "baechi-graph", [&](const Cursor &root) {
    root.onlyKeys({"format", "version", "meta", "ops", "edges"});
    root["ops"].forEach([&](size_t position, const Cursor &at) {
      graph.ops.push_back(readOperator(position, at));
    });
    root["edges"].forEach(
        [&](size_t, const Cursor &at) { graph.edges.push_back(readEdge(at)); });
  });
}

std::string baechi::placement::readGraph(const std::string &path,
                                         Graph &graph) {
  std::string text;
  std::string error = readTextFile(path, text);
  return error.empty() ? parseGraph(text, path, graph) : error;
}

std::string baechi::placement::formatGraph(const Graph &graph,
                                           std::string &text) try {
  nlohmann::ordered_json root{{"format", "baechi-graph"}, {"version", 1}};
  auto &ops = root["ops"] = nlohmann::ordered_json::array();
  for (size_t i = 0; i < graph.ops.size(); ++i)
    ops.push_back(toJson(i, graph.ops[i]));
  auto &edges = root["edges"] = nlohmann::ordered_json::array();
  for (const Edge &edge : graph.edges) {
    nlohmann::ordered_json entry{{"from", edge.from}};
    if (edge.output >= 0)
      entry["output"] = edge.output;
    entry["to"] = edge.to;
    edges.push_back(std::move(entry));
  }
  text = root.dump() + "\n";
  return "";
} catch (const std::exception &e) {
  return fmt::format("cannot write: {}", e.what());
}

std::string baechi::placement::writeGraph(const std::string &path,
                                          const Graph &graph) {
  std::string text;
  std::string error = formatGraph(graph, text);
  return error.empty() ? writeTextFile(path, text) : path + ": " + error;
}

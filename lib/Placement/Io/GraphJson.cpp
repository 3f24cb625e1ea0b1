//===- GraphJson.cpp - Graph files ------------------------------*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Baechi/Placement/Io/Files.h"
#include "Baechi/Support/Json.h"

#include <fmt/format.h>

using namespace baechi::placement;
namespace json = baechi::support::json;
using json::Cursor;

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

Operator readOperator(size_t position, const Cursor &at) {
  Operator op;
  op.name = at["name"].string();
  at.onlyKeys({"id", "name", "time_ns", "outputs", "scratch", "resident",
               "group", "pin", "backward", "forward", "result"});
  if (int64_t id = at["id"].integer(); id != static_cast<int64_t>(position))
    at["id"].fail(
        fmt::format("is {}, but must be its position {}", id, position));
  Cursor time = at["time_ns"];
  if (time.isObject())
    time.forEachMember([&](std::string_view kind, const Cursor &ns) {
      op.timeNs.emplace_back(kind, ns.integer());
    });
  else
    op.timeNs.emplace_back("", time.integer());
  if (auto outputs = at.find("outputs"))
    outputs->forEach([&](const Cursor &output) {
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

template <typename... Args>
void append(std::string &text, fmt::format_string<Args...> format,
            Args &&...args) {
  fmt::format_to(std::back_inserter(text), format, std::forward<Args>(args)...);
}

void appendString(std::string &text, const char *key,
                  const std::string &value) {
  append(text, ",\"{}\":", key);
  json::appendQuoted(text, value);
}

void appendTimes(std::string &text, const Operator &op) {
  if (op.timeNs.size() == 1 && op.timeNs.front().first.empty()) {
    append(text, ",\"time_ns\":{}", op.timeNs.front().second);
    return;
  }
  text += ",\"time_ns\":{";
  const char *separator = "";
  for (const auto &[kind, ns] : op.timeNs) {
    text += separator;
    json::appendQuoted(text, kind);
    append(text, ":{}", ns);
    separator = ",";
  }
  text += '}';
}

void appendOutputs(std::string &text, const Operator &op) {
  text += ",\"outputs\":[";
  const char *separator = "";
  for (const Output &output : op.outputs) {
    text += separator;
    if (output.memory == output.bytes && output.copy == output.bytes)
      append(text, "{}", output.bytes);
    else
      append(text, R"({{"bytes":{},"memory":{},"copy":{}}})", output.bytes,
             output.memory, output.copy);
    separator = ",";
  }
  text += ']';
}

/// Leaves out what has its default.
void appendOperator(std::string &text, size_t id, const Operator &op) {
  append(text, "{{\"id\":{}", id);
  appendString(text, "name", op.name);
  appendTimes(text, op);
  appendOutputs(text, op);
  if (op.scratch)
    append(text, ",\"scratch\":{}", op.scratch);
  if (op.resident)
    append(text, ",\"resident\":{}", op.resident);
  if (op.group)
    appendString(text, "group", *op.group);
  if (op.pin)
    appendString(text, "pin", *op.pin);
  if (op.backward)
    text += ",\"backward\":true";
  if (op.forward)
    append(text, ",\"forward\":{}", *op.forward);
  if (op.result)
    text += ",\"result\":true";
  text += '}';
}

void appendEdge(std::string &text, const Edge &edge) {
  append(text, "{{\"from\":{}", edge.from);
  if (edge.output >= 0)
    append(text, ",\"output\":{}", edge.output);
  append(text, ",\"to\":{}}}", edge.to);
}

} // namespace

std::string baechi::placement::parseGraph(std::string_view text,
                                          const std::string &name,
                                          Graph &graph) {
  graph = {};
  auto readOp = [&](size_t position, const Cursor &at) {
    graph.ops.push_back(readOperator(position, at));
  };
  auto readArrow = [&](size_t, const Cursor &at) {
    graph.edges.push_back(readEdge(at));
  };
  return json::parse(
      text, name, "baechi-graph", {{"ops", readOp}, {"edges", readArrow}},
      [](const Cursor &root) {
        root.onlyKeys({"format", "version", "meta", "ops", "edges"});
        for (const char *key : {"ops", "edges"})
          root[key].expect(json::Kind::Array);
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
  text = R"({"format":"baechi-graph","version":1,"ops":[)";
  for (size_t i = 0; i < graph.ops.size(); ++i) {
    text += i ? "," : "";
    appendOperator(text, i, graph.ops[i]);
  }
  text += "],\"edges\":[";
  for (size_t e = 0; e < graph.edges.size(); ++e) {
    text += e ? "," : "";
    appendEdge(text, graph.edges[e]);
  }
  text += "]}\n";
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

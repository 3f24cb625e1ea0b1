//===- GraphJson.cpp - Graph files ------------------------------*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Baechi/Placement/Io/AlternativesFile.h"
#include "Baechi/Placement/Io/Files.h"
#include "Baechi/Support/Json.h"
#include "Io/AlternativesJson.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

using namespace baechi::placement;
namespace json = baechi::support::json;
using json::Cursor;

namespace {

/// What a reader that plans no alternatives says of them: to pass over them
/// would be to place another graph.
void refuse(const std::optional<Cursor> &stated) {
  if (stated)
    stated->fail("states other ways to do operators, which only baechi-place "
                 "plans");
}

/// \p shapes gets the output's, where there may be one.
Output readOutput(const Cursor &at, std::vector<std::vector<int64_t>> *shapes) {
  if (shapes)
    shapes->emplace_back();
  if (!at.isObject())
    return Output(at.integer());
  if (!shapes)
    refuse(at.find("shape"));
  auto [bytes, memory, copy, shape] =
      at.members({"bytes", "memory", "copy", "shape"});
  if (shapes && shape)
    shapes->back() = shape->list([](const Cursor &n) { return n.integer(); });
  Output output(at["bytes"].integer());
  if (memory)
    output.memory = memory->integer();
  if (copy)
    output.copy = copy->integer();
  return output;
}

/// \p alternatives gets the operator's, where there may be any.
Operator readOperator(size_t position, const Cursor &at,
                      Alternatives *alternatives) {
  Operator op;
  op.name = at["name"].string();
  auto [id, name, time, outputs, scratch, resident, group, pin, backward,
        forward, result, part, exchange, ways] =
      at.members({"id", "name", "time_ns", "outputs", "scratch", "resident",
                  "group", "pin", "backward", "forward", "result", "part",
                  "exchange", "alternatives"});
  std::vector<std::vector<int64_t>> *shapes = nullptr;
  if (alternatives) {
    shapes = &alternatives->shapes.emplace_back();
    alternatives->of.push_back(io::readAlternatives(at));
  } else {
    refuse(ways);
  }
  if (int64_t stated = at["id"].integer();
      stated != static_cast<int64_t>(position))
    id->fail(
        fmt::format("is {}, but must be its position {}", stated, position));
  op.timeNs = io::readTimes(at["time_ns"]);
  if (outputs) {
    op.outputs.reserve(outputs->size());
    outputs->forEach([&](const Cursor &output) {
      op.outputs.push_back(readOutput(output, shapes));
    });
  }
  if (scratch)
    op.scratch = scratch->integer();
  if (resident)
    op.resident = resident->integer();
  if (group)
    op.group = group->string();
  if (pin)
    op.pin = pin->string();
  if (backward)
    op.backward = backward->boolean();
  if (forward)
    op.forward = forward->index();
  if (result)
    op.result = result->boolean();
  if (part)
    op.part = part->naturalIndex();
  if (exchange)
    op.exchange = exchange->natural();
  return op;
}

Edge readEdge(const Cursor &at) {
  auto [from, output, to] = at.members({"from", "output", "to"});
  Edge edge;
  edge.from = at["from"].index();
  edge.to = at["to"].index();
  if (output) {
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

void appendOutputs(std::string &text, const Operator &op,
                   const std::vector<std::vector<int64_t>> *shapes) {
  text += ",\"outputs\":[";
  const char *separator = "";
  for (size_t o = 0; o < op.outputs.size(); ++o) {
    const Output &output = op.outputs[o];
    bool hasShape = shapes && o < shapes->size() && !(*shapes)[o].empty();
    text += separator;
    separator = ",";
    if (output.memory == output.bytes && output.copy == output.bytes &&
        !hasShape) {
      append(text, "{}", output.bytes);
      continue;
    }
    append(text, R"({{"bytes":{},"memory":{},"copy":{})", output.bytes,
           output.memory, output.copy);
    if (hasShape)
      append(text, ",\"shape\":[{}]", fmt::join((*shapes)[o], ","));
    text += '}';
  }
  text += ']';
}

/// Leaves out what has its default.
void appendOperator(std::string &text, size_t id, const Operator &op,
                    const Alternatives *alternatives) {
  append(text, "{{\"id\":{}", id);
  appendString(text, "name", op.name);
  text += ',';
  io::appendTimes(text, op.timeNs);
  appendOutputs(text, op, alternatives ? &alternatives->shapes[id] : nullptr);
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
  if (op.part)
    append(text, ",\"part\":{}", *op.part);
  if (op.exchange)
    append(text, ",\"exchange\":{}", op.exchange);
  if (alternatives)
    io::appendAlternatives(text, alternatives->of[id]);
  text += '}';
}

void appendEdge(std::string &text, const Edge &edge) {
  append(text, "{{\"from\":{}", edge.from);
  if (edge.output >= 0)
    append(text, ",\"output\":{}", edge.output);
  append(text, ",\"to\":{}}}", edge.to);
}

std::string parse(std::string_view text, const std::string &name, Graph &graph,
                  Alternatives *alternatives) {
  graph = {};
  auto readOp = [&](size_t position, const Cursor &at) {
    graph.ops.push_back(readOperator(position, at, alternatives));
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

std::string formatWith(const Graph &graph, const Alternatives *alternatives,
                       std::string &text) try {
  text = R"({"format":"baechi-graph","version":1,"ops":[)";
  for (size_t i = 0; i < graph.ops.size(); ++i) {
    text += i ? "," : "";
    appendOperator(text, i, graph.ops[i], alternatives);
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

} // namespace

std::string baechi::placement::parseGraph(std::string_view text,
                                          const std::string &name,
                                          Graph &graph) {
  return parse(text, name, graph, nullptr);
}

std::string baechi::placement::parseAlternatives(std::string_view text,
                                                 const std::string &name,
                                                 Graph &graph,
                                                 Alternatives &alternatives) {
  alternatives = {};
  return parse(text, name, graph, &alternatives);
}

std::string baechi::placement::readGraph(const std::string &path,
                                         Graph &graph) {
  std::string text;
  std::string error = readTextFile(path, text);
  return error.empty() ? parseGraph(text, path, graph) : error;
}

std::string baechi::placement::readAlternatives(const std::string &path,
                                                Graph &graph,
                                                Alternatives &alternatives) {
  std::string text;
  std::string error = readTextFile(path, text);
  return error.empty() ? parseAlternatives(text, path, graph, alternatives)
                       : error;
}

std::string baechi::placement::formatGraph(const Graph &graph,
                                           std::string &text) {
  return formatWith(graph, nullptr, text);
}

std::string baechi::placement::formatAlternatives(
    const Graph &graph, const Alternatives &alternatives, std::string &text) {
  return formatWith(graph, &alternatives, text);
}

std::string baechi::placement::writeGraph(const std::string &path,
                                          const Graph &graph) {
  std::string text;
  std::string error = formatGraph(graph, text);
  return error.empty() ? writeTextFile(path, text) : path + ": " + error;
}

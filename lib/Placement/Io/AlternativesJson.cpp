//===- AlternativesJson.cpp - Alternatives in graph files -------*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Io/AlternativesJson.h"
#include "Baechi/Placement/Io/AlternativesFile.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

using namespace baechi::placement;
namespace json = baechi::support::json;
using json::Cursor;

namespace {

/// The members "along" and "sizes", each of which may be missing.
Cut readCut(const Cursor &at) {
  Cut cut;
  if (auto along = at.find("along"))
    cut.along = along->naturalIndex();
  if (auto sizes = at.find("sizes"))
    cut.sizes = sizes->list([](const Cursor &size) { return size.integer(); });
  return cut;
}

int64_t readOptional(const Cursor &at, const char *key, int64_t otherwise) {
  auto found = at.find(key);
  return found ? found->natural() : otherwise;
}

OutputCut readOutputCut(const Cursor &at) {
  at.onlyKeys({"along", "sizes", "partial", "extra"});
  OutputCut output;
  output.cut = readCut(at);
  if (auto partial = at.find("partial"))
    output.isPartial = partial->boolean();
  output.extra = readOptional(at, "extra", 0);
  return output;
}

InputCut readInputCut(const Cursor &at) {
  at.onlyKeys({"from", "output", "along", "sizes", "extra"});
  InputCut input;
  input.from = at["from"].naturalIndex();
  input.output = at["output"].naturalIndex();
  input.cut = readCut(at);
  input.extra = readOptional(at, "extra", 0);
  return input;
}

Piece readPiece(const Cursor &at) {
  at.onlyKeys({"time_ns", "scratch", "resident"});
  return {io::readTimes(at["time_ns"]), readOptional(at, "scratch", 0),
          readOptional(at, "resident", 0)};
}

Alternative readAlternative(const Cursor &at) {
  at.onlyKeys({"name", "pieces", "outputs", "inputs", "sum_ns", "replicas",
               "exchange"});
  Alternative each;
  each.name = at["name"].string();
  each.pieces = at["pieces"].list(readPiece);
  if (auto outputs = at.find("outputs"))
    each.outputs = outputs->list(readOutputCut);
  if (auto inputs = at.find("inputs"))
    each.inputs = inputs->list(readInputCut);
  each.sumNs = readOptional(at, "sum_ns", 0);
  if (auto replicas = at.find("replicas"))
    each.replicas = replicas->naturalIndex();
  each.exchange = readOptional(at, "exchange", 0);
  return each;
}

template <typename... Args>
void append(std::string &text, fmt::format_string<Args...> format,
            Args &&...args) {
  fmt::format_to(std::back_inserter(text), format, std::forward<Args>(args)...);
}

/// `"key":value` where the value is not the default.
void appendNumber(std::string &text, const char *key, int64_t value,
                  int64_t otherwise = 0) {
  if (value != otherwise)
    append(text, ",\"{}\":{}", key, value);
}

void appendCut(std::string &text, const Cut &cut) {
  appendNumber(text, "along", cut.along, -1);
  if (!cut.sizes.empty())
    append(text, ",\"sizes\":[{}]", fmt::join(cut.sizes, ","));
}

/// What \p print writes of every item, with commas, as `,"key":[{…},{…}]`.
template <typename Items, typename Print>
void appendList(std::string &text, const char *key, const Items &items,
                Print print) {
  append(text, ",\"{}\":[", key);
  const char *separator = "";
  for (const auto &item : items) {
    std::string members;
    print(members, item);
    // Without the comma before the first member.
    append(text, "{}{{{}}}", separator,
           std::string_view(members).substr(members.empty() ? 0 : 1));
    separator = ",";
  }
  text += ']';
}

void appendAlternative(std::string &text, const Alternative &each) {
  text += ",\"name\":";
  json::appendQuoted(text, each.name);
  appendList(text, "pieces", each.pieces,
             [](std::string &members, const Piece &piece) {
               members += ',';
               io::appendTimes(members, piece.timeNs);
               appendNumber(members, "scratch", piece.scratch);
               appendNumber(members, "resident", piece.resident);
             });
  if (!each.outputs.empty())
    appendList(text, "outputs", each.outputs,
               [](std::string &members, const OutputCut &output) {
                 appendCut(members, output.cut);
                 if (output.isPartial)
                   members += ",\"partial\":true";
                 appendNumber(members, "extra", output.extra);
               });
  if (!each.inputs.empty())
    appendList(text, "inputs", each.inputs,
               [](std::string &members, const InputCut &input) {
                 append(members, ",\"from\":{},\"output\":{}", input.from,
                        input.output);
                 appendCut(members, input.cut);
                 appendNumber(members, "extra", input.extra);
               });
  appendNumber(text, "sum_ns", each.sumNs);
  appendNumber(text, "replicas", each.replicas, 1);
  appendNumber(text, "exchange", each.exchange);
}

} // namespace

io::Times io::readTimes(const Cursor &at) {
  Times times;
  if (at.isObject())
    at.forEachMember([&](std::string_view kind, const Cursor &ns) {
      times.emplace_back(kind, ns.integer());
    });
  else
    times.emplace_back("", at.integer());
  return times;
}

void io::appendTimes(std::string &text, const Times &times) {
  text += "\"time_ns\":";
  if (times.size() == 1 && times.front().first.empty()) {
    append(text, "{}", times.front().second);
    return;
  }
  const char *separator = "{";
  for (const auto &[kind, ns] : times) {
    text += separator;
    json::appendQuoted(text, kind);
    append(text, ":{}", ns);
    separator = ",";
  }
  text += times.empty() ? "{}" : "}";
}

std::vector<Alternative> io::readAlternatives(const Cursor &op) {
  auto found = op.find("alternatives");
  return found ? found->list(readAlternative) : std::vector<Alternative>();
}

void io::appendAlternatives(std::string &text,
                            const std::vector<Alternative> &alternatives) {
  if (!alternatives.empty())
    appendList(text, "alternatives", alternatives, appendAlternative);
}

std::string baechi::placement::parseWays(std::string_view text,
                                         const std::string &name,
                                         const Graph &graph,
                                         const Alternatives &alternatives,
                                         Ways &ways) {
  ways.assign(graph.ops.size(), -1);
  auto read = [&](size_t, const Cursor &at) {
    at.onlyKeys({"id", "alternative"});
    int32_t op = at["id"].naturalIndex();
    if (static_cast<size_t>(op) >= graph.ops.size())
      at["id"].fail(fmt::format("is {}, but the graph has {} operators", op,
                                graph.ops.size()));
    if (ways[op] >= 0)
      at["id"].fail(fmt::format("is {}, whose way an earlier choice says", op));
    const std::vector<Alternative> &of = alternatives.of[op];
    std::string wanted = at["alternative"].string();
    auto it = std::find_if(of.begin(), of.end(), [&](const Alternative &a) {
      return a.name == wanted;
    });
    if (it == of.end())
      at["alternative"].fail(fmt::format(
          "operator {} '{}' has no alternative '{}': the placement is of "
          "another graph",
          op, graph.ops[op].name, wanted));
    ways[op] = static_cast<int32_t>(it - of.begin());
  };
  auto passOver = [](size_t, const Cursor &) {};
  return json::parse(
      text, name, "baechi-placement",
      {{"choices", read}, {"ops", passOver}, {"transfers", passOver}},
      [](const Cursor &) {});
}

std::string baechi::placement::readWays(const std::string &path,
                                        const Graph &graph,
                                        const Alternatives &alternatives,
                                        Ways &ways) {
  std::string text;
  std::string error = readTextFile(path, text);
  return error.empty() ? parseWays(text, path, graph, alternatives, ways)
                       : error;
}

std::vector<NamedAlternative>
baechi::placement::namesOf(const Alternatives &alternatives, const Ways &ways) {
  std::vector<NamedAlternative> names;
  for (size_t op = 0; op < ways.size(); ++op)
    if (ways[op] >= 0)
      names.push_back(
          {static_cast<int32_t>(op), alternatives.of[op][ways[op]].name});
  return names;
}

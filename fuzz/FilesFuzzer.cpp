//===- FilesFuzzer.cpp - Whatever the files say -*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The input is a graph, a machine, a placement and an expert's rules, with a
// line of dashes after each. What can be read is written, read and written
// again: the same text. A placement of a problem that is well formed is judged
// and replayed.
//
//===----------------------------------------------------------------------===//

#include "Baechi/Placement/Io/AlternativesFile.h"
#include "Baechi/Placement/Session/Place.h"
#include <algorithm>
#include <cstdlib>

using namespace baechi::placement;

static std::string_view next(std::string_view &text) {
  size_t line = text.find("\n---\n");
  std::string_view part = text.substr(0, line);
  text.remove_prefix(line == text.npos ? text.size() : line + 5);
  return part;
}

static void require(bool condition) {
  if (!condition)
    std::abort();
}

/// What cannot be written, as a name that is not UTF-8, is an error, too.
template <typename T, typename Parse, typename Format>
static bool roundTrip(std::string_view text, T &value, Parse parse,
                      Format format) {
  if (!parse(text, value).empty())
    return false;
  std::string first, second;
  if (!format(value, first).empty())
    return true;
  T again;
  require(parse(first, again).empty());
  require(format(again, second).empty());
  require(first == second);
  return true;
}

struct WithAlternatives {
  Graph graph;
  Alternatives alternatives;
};

/// A graph that states alternatives, in the first and in the last of each
/// operator's ways, where there are few pieces.
static void expandGraph(std::string_view text, const Machine &machine) {
  WithAlternatives of;
  if (!roundTrip(
          text, of,
          [](std::string_view part, WithAlternatives &read) {
            return parseAlternatives(part, "graph", read.graph,
                                     read.alternatives);
          },
          [](const WithAlternatives &written, std::string &result) {
            return formatAlternatives(written.graph, written.alternatives,
                                      result);
          }) ||
      !check({of.graph, machine}).empty() ||
      !checkAlternatives(of.graph, of.alternatives).empty())
    return;
  for (bool last : {false, true}) {
    Ways ways;
    size_t pieces = 0;
    for (const auto &each : of.alternatives.of) {
      ways.push_back(
          last ? static_cast<int32_t>(each.size()) - 1
               : std::min<int32_t>(0, static_cast<int32_t>(each.size()) - 1));
      if (ways.back() >= 0)
        pieces += each[ways.back()].pieces.size();
    }
    Expansion expansion;
    if (pieces > 64 ||
        !expand(of.graph, of.alternatives, ways, expansion).empty())
      continue;
    require(expansion.origins.size() == expansion.graph.ops.size());
    check({expansion.graph, machine});
  }
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  std::string_view text(reinterpret_cast<const char *>(data), size);
  Problem problem;
  std::string_view graphText = next(text);
  bool isGraph = roundTrip(
      graphText, problem.graph,
      [](std::string_view part, Graph &graph) {
        return parseGraph(part, "graph", graph);
      },
      formatGraph);
  bool isMachine = roundTrip(
      next(text), problem.machine,
      [](std::string_view part, Machine &machine) {
        return parseMachine(part, "machine", machine);
      },
      formatMachine);
  std::string_view placementText = next(text), expert = next(text);
  if (!isMachine || problem.machine.devices.size() > 64)
    return 0;
  expandGraph(graphText, problem.machine);
  std::vector<ExpertRule> rules;
  parseExpert(expert, "rules", problem.machine, rules);
  if (!isGraph || !check(problem).empty())
    return 0;
  PlacementInfo info;
  Placement placement;
  bool isPlacement = roundTrip(
      placementText, placement,
      [&](std::string_view part, Placement &read) {
        return parsePlacement(part, "placement", problem, read, &info);
      },
      [&](const Placement &written, std::string &result) {
        return formatPlacement(problem, written, info, result);
      });
  if (isPlacement && verify(problem, placement).empty())
    require(usage(problem, placement).size() == problem.machine.devices.size());
  return 0;
}

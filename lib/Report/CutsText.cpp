//===- CutsText.cpp - What was done in pieces -------------------*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Baechi/Report/Cuts.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <map>

using namespace baechi::placement;
using namespace baechi::report;

namespace {

double milliseconds(int64_t ns) { return static_cast<double>(ns) / 1e6; }

/// Operators done in one way, by its name and number of pieces.
struct Row {
  std::string name;
  size_t pieces = 1;
  std::vector<std::string> operators;
};

std::vector<Row> rowsOf(const Graph &graph, const Alternatives &alternatives,
                        const Ways &ways) {
  std::map<std::pair<std::string, size_t>, Row> rows;
  for (size_t op = 0; op < ways.size(); ++op) {
    if (ways[op] < 0)
      continue;
    const Alternative &taken = alternatives.of[op][ways[op]];
    Row &row = rows[{taken.name, taken.pieces.size()}];
    row.name = taken.name;
    row.pieces = taken.pieces.size();
    row.operators.push_back(graph.ops[op].name);
  }
  std::vector<Row> found;
  for (auto &[key, row] : rows)
    found.push_back(std::move(row));
  std::stable_sort(found.begin(), found.end(), [](const Row &a, const Row &b) {
    return a.operators.size() > b.operators.size();
  });
  return found;
}

size_t withAlternatives(const Alternatives &alternatives) {
  return static_cast<size_t>(
      std::count_if(alternatives.of.begin(), alternatives.of.end(),
                    [](const auto &of) { return !of.empty(); }));
}

} // namespace

std::string baechi::report::cutsText(const Graph &graph,
                                     const Alternatives &alternatives,
                                     const CutPlan &plan, Objective objective) {
  std::string text;
  auto out = std::back_inserter(text);
  std::vector<Row> rows = rowsOf(graph, alternatives, plan.ways);
  size_t chosen = 0;
  for (const Row &row : rows)
    chosen += row.operators.size();
  fmt::format_to(
      out,
      "pieces        {} of {} operators that state alternatives are done "
      "otherwise; {} {}looked at, {} placed\n",
      chosen, withAlternatives(alternatives), plan.proposed,
      plan.isExhaustive ? "ways, all there are, " : "ways ", plan.placed);
  for (const Row &row : rows) {
    constexpr size_t shown = 4;
    std::vector<std::string> first(
        row.operators.begin(),
        row.operators.begin() +
            static_cast<std::ptrdiff_t>(std::min(shown, row.operators.size())));
    fmt::format_to(out, "              {}: {} operators in {} piece{}: {}{}\n",
                   row.name, row.operators.size(), row.pieces,
                   row.pieces == 1 ? "" : "s", fmt::join(first, ", "),
                   row.operators.size() > shown ? ", …" : "");
  }
  int64_t ns = objectiveNs(plan.result, objective);
  std::string_view what = objectiveWord(objective);
  if (!plan.wholeNs)
    fmt::format_to(out,
                   "              {} {:.3f} ms; there is no placement of the "
                   "graph as it is to compare with\n",
                   what, milliseconds(ns));
  else
    fmt::format_to(
        out,
        "              {} {:.3f} ms, as it is {:.3f} ms: saves "
        "{:.3f} ms ({:.0f} %)\n",
        what, milliseconds(ns), milliseconds(*plan.wholeNs),
        milliseconds(*plan.wholeNs - ns),
        100.0 * static_cast<double>(*plan.wholeNs - ns) /
            static_cast<double>(std::max<int64_t>(*plan.wholeNs, 1)));
  return text;
}

std::string baechi::report::cutsJson(const std::string &report,
                                     const Graph &graph,
                                     const Alternatives &alternatives,
                                     const CutPlan &plan) {
  using Json = nlohmann::ordered_json;
  Json root = Json::parse(report), choices = Json::array();
  for (size_t op = 0; op < plan.ways.size(); ++op) {
    if (plan.ways[op] < 0)
      continue;
    const Alternative &taken = alternatives.of[op][plan.ways[op]];
    choices.push_back({{"id", op},
                       {"name", graph.ops[op].name},
                       {"alternative", taken.name},
                       {"pieces", taken.pieces.size()}});
  }
  root["pieces"] = {{"whole_ns", plan.wholeNs ? Json(*plan.wholeNs) : Json()},
                    {"proposed", plan.proposed},
                    {"placed", plan.placed},
                    {"exhaustive", plan.isExhaustive},
                    {"choices", std::move(choices)}};
  return root.dump(1) + "\n";
}

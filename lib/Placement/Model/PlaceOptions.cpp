//===- PlaceOptions.cpp - What improvement may cost -------------*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Baechi/Placement/Model/PlaceOptions.h"
#include "Baechi/Placement/Model/Problem.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>

using namespace baechi::placement;

std::string_view baechi::placement::objectiveText(Objective objective) {
  switch (objective) {
  case Objective::Makespan:
    return "makespan";
  case Objective::MaxLoad:
    return "max-load";
  case Objective::Period:
    return "period";
  }
  return "makespan";
}

std::string_view baechi::placement::objectiveWord(Objective objective) {
  switch (objective) {
  case Objective::Makespan:
    return "step";
  case Objective::MaxLoad:
    return "max load";
  case Objective::Period:
    return "period";
  }
  return "step";
}

std::string baechi::placement::parseObjective(std::string_view name,
                                              Objective &objective) {
  for (Objective each :
       {Objective::Makespan, Objective::MaxLoad, Objective::Period})
    if (name == objectiveText(each)) {
      objective = each;
      return "";
    }
  return fmt::format("unknown objective '{}': use makespan, max-load or period",
                     name);
}

/// The whole of \p text as a number.
template <typename Number>
static bool parseNumber(std::string_view text, Number &number) {
  auto [end, error] =
      std::from_chars(text.data(), text.data() + text.size(), number);
  return error == std::errc() && end == text.data() + text.size();
}

std::string baechi::placement::parseBudget(std::string_view text,
                                           Budget &budget) {
  if (text == "auto") {
    budget = {};
    return "";
  }
  if (text.ends_with('e')) {
    int64_t evaluations = 0;
    if (parseNumber(text.substr(0, text.size() - 1), evaluations) &&
        evaluations > 0) {
      budget = Budget::ofEvaluations(evaluations);
      return "";
    }
  } else {
    std::string_view digits = text;
    if (digits.ends_with('s'))
      digits.remove_suffix(1);
    double seconds = 0;
    if (parseNumber(digits, seconds) && std::isfinite(seconds) &&
        seconds >= 0) {
      budget = seconds == 0 ? Budget::none() : Budget::ofSeconds(seconds);
      return "";
    }
  }
  return fmt::format("unknown budget '{}': use auto, 0 (the placer's pure "
                     "result), seconds such as 30 or 0.5s, or evaluations such "
                     "as 5000e",
                     text);
}

std::string baechi::placement::formatBudget(const Budget &budget) {
  switch (budget.kind) {
  case Budget::Kind::Automatic:
    return "auto";
  case Budget::Kind::None:
    return "0";
  case Budget::Kind::Seconds:
    return fmt::format("{}s", budget.seconds);
  case Budget::Kind::Evaluations:
    return fmt::format("{}e", budget.evaluations);
  }
  return "auto";
}

std::vector<std::string>
baechi::placement::usualGrouping(const Graph &graph,
                                 const PlaceOptions &options) {
  bool isOfThePaper = options.placer == "metf" || options.placer == "msct";
  if (!isOfThePaper || options.budget.kind != Budget::Kind::None)
    return PlaceOptions().grouping;
  std::vector<std::string> steps{"colocate", "multilevel", "fuse"};
  if (std::any_of(graph.ops.begin(), graph.ops.end(),
                  [](const Operator &op) { return op.forward.has_value(); }))
    steps.insert(steps.begin(), "forward");
  return steps;
}

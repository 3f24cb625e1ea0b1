//===- Pickle.cpp - Problems and results in other processes -----*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// What pickle and copy.deepcopy take of a problem and of a result: the texts
/// of docs/formats.md, and a result's fields in their order here. Nothing is
/// placed again; the placement is verified again, so that a damaged one is
/// refused.
///
//===----------------------------------------------------------------------===//
#include "Bindings.h"

#include "Baechi/Placement/Io/Files.h"

using namespace baechi;
using namespace baechi::python;

nb::tuple python::stateOf(const SharedProblem &problem) {
  std::string graph, machine;
  raiseUnlessEmpty(placement::formatGraph(problem.problem->graph, graph));
  raiseUnlessEmpty(placement::formatMachine(problem.problem->machine, machine));
  return nb::make_tuple(graph, problem.graphName, machine, problem.machineName);
}

namespace {

nb::list statesOf(const placement::PlaceResult &result) {
  nb::list candidates, phases, steps;
  for (const placement::Candidate &each : result.candidates)
    candidates.append(nb::make_tuple(each.name, each.feasible, each.makespanNs,
                                     each.maxLoadNs, each.periodNs,
                                     each.problem));
  for (const placement::Phase &each : result.phases)
    phases.append(nb::make_tuple(each.name, each.seconds));
  for (const placement::GroupingStep &each : result.grouping)
    steps.append(nb::make_tuple(
        each.name, each.operatorsBefore, each.operatorsAfter, each.groupsBefore,
        each.groupsAfter, each.largestWork, each.largestMemory));
  nb::list all;
  all.append(std::move(candidates));
  all.append(std::move(phases));
  all.append(std::move(steps));
  return all;
}

template <typename T> T at(const nb::handle &row, size_t column) {
  return nb::cast<T>(row[column]);
}

void setStates(const nb::list &all, placement::PlaceResult &result) {
  for (nb::handle row : all[0])
    result.candidates.push_back({at<std::string>(row, 0), at<bool>(row, 1),
                                 at<int64_t>(row, 2), at<int64_t>(row, 3),
                                 at<int64_t>(row, 4), at<std::string>(row, 5)});
  for (nb::handle row : all[1])
    result.phases.push_back({at<std::string>(row, 0), at<double>(row, 1)});
  for (nb::handle row : all[2])
    result.grouping.push_back({at<std::string>(row, 0), at<int32_t>(row, 1),
                               at<int32_t>(row, 2), at<int32_t>(row, 3),
                               at<int32_t>(row, 4), at<double>(row, 5),
                               at<double>(row, 6)});
}

} // namespace

nb::tuple python::stateOf(const Result &of) {
  const placement::PlaceOptions &options = of.options;
  const placement::PlaceResult &result = of.result;
  nb::list rules;
  for (const placement::ExpertRule &rule : options.expert)
    rules.append(nb::make_tuple(rule.pattern, rule.device));
  // The schedule's times as they are; a file has them, too, with the names.
  std::string placed;
  raiseUnlessEmpty(placement::formatPlacement(*of.of.problem, *result.placement,
                                              {result.winner, 0}, placed));
  return nb::make_tuple(
      of.of, placed, result.winner,
      nb::make_tuple(options.placer, options.grouping,
                     std::string(placement::objectiveText(options.objective)),
                     placement::formatBudget(options.budget), options.seed,
                     options.solverSeconds, rules),
      nb::make_tuple(
          result.lowerBoundNs, result.lowerBoundName, result.maxLoadNs,
          result.singleDeviceNs, result.operatorsBefore, result.operatorsAfter,
          result.notes, result.periodNs, result.cycleNs, result.cycleSteps),
      statesOf(result));
}

Result python::resultOf(const nb::tuple &state) {
  Result found{nb::cast<SharedProblem>(state[0]), {}, {}};
  const placement::Problem &problem = *found.of.problem;
  placement::PlaceResult &result = found.result;
  placement::Placement placed;
  raiseUnlessEmpty(placement::parsePlacement(
      at<std::string>(state, 1), "the placement of a pickle", problem, placed));
  if (std::vector<std::string> wrong =
          placement::verify(problem, placed, &result.usage);
      !wrong.empty())
    throw PlacementError("the placement of a pickle is not valid: " +
                         wrong.front());
  result.placement = std::move(placed);
  result.winner = at<std::string>(state, 2);

  placement::PlaceOptions &options = found.options;
  nb::handle asked = state[3];
  options.placer = at<std::string>(asked, 0);
  options.grouping = at<std::vector<std::string>>(asked, 1);
  raiseUnlessEmpty(
      placement::parseObjective(at<std::string>(asked, 2), options.objective));
  raiseUnlessEmpty(
      placement::parseBudget(at<std::string>(asked, 3), options.budget));
  options.seed = at<uint64_t>(asked, 4);
  options.solverSeconds = at<double>(asked, 5);
  for (nb::handle rule : asked[6])
    options.expert.push_back(
        {at<std::string>(rule, 0), at<std::string>(rule, 1)});

  nb::handle said = state[4];
  result.lowerBoundNs = at<int64_t>(said, 0);
  result.lowerBoundName = at<std::string>(said, 1);
  result.maxLoadNs = at<int64_t>(said, 2);
  result.singleDeviceNs = at<std::optional<int64_t>>(said, 3);
  result.operatorsBefore = at<int32_t>(said, 4);
  result.operatorsAfter = at<int32_t>(said, 5);
  result.notes = at<std::vector<std::string>>(said, 6);
  result.periodNs = at<int64_t>(said, 7);
  result.cycleNs = at<int64_t>(said, 8);
  result.cycleSteps = at<int64_t>(said, 9);
  setStates(nb::cast<nb::list>(state[5]), result);
  return found;
}

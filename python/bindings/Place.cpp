//===- Place.cpp - Finding, judging and comparing placements ----*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "Bindings.h"

#include "Baechi/Placement/Io/Files.h"
#include "Baechi/Placement/Lp/NativeSolver.h"
#include "Baechi/Placement/Study/Compare.h"
#include "Baechi/Placement/Study/Judge.h"
#include "Baechi/Report/Report.h"
#include "Progress.h"
#ifdef BAECHI_HAVE_SCOTCH
#include "Baechi/Placement/Placers/Scotch.h"
#endif

using namespace baechi;
using namespace baechi::python;

namespace {

/// What a call was given, and what it must keep alive.
struct Call {
  placement::PlaceOptions options;
  std::unique_ptr<placement::LpSolver> solver;
#ifdef BAECHI_HAVE_SCOTCH
  std::unique_ptr<placement::Partitioner> scotch =
      placement::createScotchPartitioner();
#endif
  Interrupt interrupt;
  std::unique_ptr<Progress> shown;
  std::optional<nb::python_error> failed;
};

void readObjective(const std::string &name, placement::PlaceOptions &options) {
  if (std::string error = placement::parseObjective(name, options.objective);
      !error.empty())
    throw PlacementError("objective: " + error);
}

/// \p progress: a function of the phase's name; None: on a terminal, a line.
void prepare(Call &call, const SharedProblem &problem,
             const std::string &placer,
             const std::optional<std::vector<std::string>> &grouping,
             const std::string &objective, const std::string &budget,
             uint64_t seed, const std::string &solver,
             const std::string &expert, const nb::object &progress) {
  placement::PlaceOptions &options = call.options;
  options.placer = placer;
  readObjective(objective, options);
  if (std::string error = placement::parseBudget(budget, options.budget);
      !error.empty())
    throw PlacementError("budget: " + error);
  options.grouping =
      grouping ? *grouping
               : placement::usualGrouping(problem.problem->graph, options);
  options.seed = seed;
  if (solver == "greedy")
    call.solver = placement::createGreedySolver();
  else if (solver != "native")
    throw PlacementError("solver: unknown solver '" + solver +
                         "': use native or greedy");
  options.solver = call.solver.get();
#ifdef BAECHI_HAVE_SCOTCH
  options.partitioner = call.scotch.get();
#endif
  if (!expert.empty())
    raiseUnlessEmpty(placement::parseExpert(
        expert, "expert", problem.problem->machine, options.expert));
  options.cancelled = [&call] { return call.failed || call.interrupt(); };
  if (progress.is_none()) {
    call.shown = std::make_unique<Progress>();
    options.progress = [&call](const std::string &phase) {
      call.shown->show(phase);
    };
  } else {
    options.progress = [&call, progress](const std::string &phase) {
      nb::gil_scoped_acquire lock;
      try {
        if (!call.failed)
          progress(phase);
      } catch (nb::python_error &error) {
        call.failed.emplace(std::move(error));
      }
    };
  }
}

/// With the lock: what Python raised meanwhile, or the library's error.
void finish(Call &call, const std::string &error) {
  call.options.progress = nullptr;
  call.options.cancelled = nullptr;
  call.shown.reset();
  if (call.failed)
    throw std::move(*call.failed);
  call.interrupt.raise();
  raiseUnlessEmpty(error);
}

Result place(const SharedProblem &problem, const std::string &placer,
             std::optional<std::vector<std::string>> grouping,
             const std::string &objective, const std::string &budget,
             uint64_t seed, const std::string &solver,
             const std::string &expert, const nb::object &progress) {
  Call call;
  prepare(call, problem, placer, grouping, objective, budget, seed, solver,
          expert, progress);
  Result answer{problem, {}, {}};
  {
    nb::gil_scoped_release unlocked;
    answer.result = placement::place(*problem.problem, call.options);
  }
  finish(call, answer.result.error);
  answer.options = call.options;
  answer.options.solver = nullptr;
  answer.options.partitioner = nullptr;
  return answer;
}

std::tuple<std::string, std::string>
compare(const SharedProblem &problem, const std::vector<std::string> &placers,
        const std::string &placer,
        std::optional<std::vector<std::string>> grouping,
        const std::string &objective, const std::string &budget, uint64_t seed,
        const std::string &solver, const std::string &expert,
        const nb::object &progress) {
  Call call;
  prepare(call, problem, placer, grouping, objective, budget, seed, solver,
          expert, progress);
  placement::Comparison comparison;
  {
    nb::gil_scoped_release unlocked;
    comparison = placement::compare(*problem.problem, call.options, placers);
  }
  finish(call, comparison.error);
  return {report::comparisonText(*problem.problem, comparison),
          report::comparisonJson(*problem.problem, comparison)};
}

/// Of a placement file's text.
Result judge(const SharedProblem &problem, const std::string &text,
             const std::string &name, const std::string &objective) {
  Result answer{problem, {}, {}};
  readObjective(objective, answer.options);
  placement::Placement placement;
  placement::PlacementInfo info;
  raiseUnlessEmpty(placement::parsePlacement(text, name, *problem.problem,
                                             placement, &info));
  {
    nb::gil_scoped_release unlocked;
    answer.result =
        placement::judge(*problem.problem, placement, answer.options);
  }
  if (!answer.result.placement)
    throw PlacementError(name + " is not valid:\n" + answer.result.error);
  answer.options.placer = "given";
  if (!info.algorithm.empty())
    answer.result.winner = info.algorithm;
  return answer;
}

} // namespace

void python::definePlace(nb::module_ &m) {
  m.def("place", &place, "problem"_a, "placer"_a, "grouping"_a.none(),
        "objective"_a, "budget"_a, "seed"_a, "solver"_a, "expert"_a,
        "progress"_a.none());
  m.def("compare", &compare, "problem"_a, "placers"_a, "placer"_a,
        "grouping"_a.none(), "objective"_a, "budget"_a, "seed"_a, "solver"_a,
        "expert"_a, "progress"_a.none(),
        "The table of placers as text and as JSON.");
  m.def("judge", &judge, "problem"_a, "text"_a, "name"_a, "objective"_a);
  m.def("placers", &placement::placerNames);
  m.def("groupings", &placement::groupingNames);
}

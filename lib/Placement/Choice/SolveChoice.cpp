//===- SolveChoice.cpp - The solver of choice programs ----------*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Choice/ChoiceSearch.h"

using namespace baechi::placement;
using namespace baechi::placement::choice;

namespace {

/// Of an automatic budget: entries for each of the program's, and the least.
constexpr uint64_t automaticFactor = 200;
constexpr uint64_t leastWork = 200'000'000;

uint64_t workLimit(const ChoiceProgram &program, const ChoiceOptions &options) {
  if (options.work > 0 || options.seconds > 0)
    return options.work;
  uint64_t entries = 0;
  for (const ChoiceEdge &edge : program.edges)
    entries += edge.costs.size();
  return leastWork + automaticFactor * entries;
}

} // namespace

ChoiceResult baechi::placement::solveChoice(const ChoiceProgram &program,
                                            const ChoiceOptions &options) {
  ChoiceResult result;
  WorkMeter meter(options, workLimit(program, options));
  Network network(program);
  result.reason = shrink(network);
  meter.charge(network.work);
  result.work = meter.work();
  // Eliminated nodes have left the least cost of all of theirs.
  if (result.reason.empty() && isForbidden(network.constant))
    result.reason = "infinite costs forbid every choice of some nodes together";
  if (!result.reason.empty()) {
    result.status = ChoiceStatus::Infeasible;
    return result;
  }
  Core core(network);
  auto take = [&](const Strategies &choice) {
    result.choice = core.expand(choice);
    result.value = evaluateChoice(program, result.choice);
    if (options.improved)
      options.improved(result.value.cost, meter.seconds());
  };
  ChoiceSearch search(core, options.seed, meter, take);
  search.run();
  result.work = meter.work();
  if (search.isInfeasible()) {
    result.status = ChoiceStatus::Infeasible;
    result.reason = "prices for the bytes of each time show that no choice "
                    "keeps the usage limit";
    return result;
  }
  result.bound = static_cast<WideSum>(search.bound());
  if (!search.hasChoice()) {
    result.reason = "no choice that keeps the usage limit was found";
    return result;
  }
  result.status = result.bound >= result.value.cost ? ChoiceStatus::Optimal
                                                    : ChoiceStatus::Feasible;
  return result;
}

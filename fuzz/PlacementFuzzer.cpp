//===- PlacementFuzzer.cpp - Graphs and machines of every kind -*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The input is a graph file and a machine file with a line of dashes between.
// Whatever they say, whichever placer and objective (its size chooses them): an
// error, or a placement that is valid.
//
//===----------------------------------------------------------------------===//

#include "Baechi/Placement/Io/Files.h"
#include "Baechi/Placement/Session/Place.h"
#include <cstdlib>

using namespace baechi::placement;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  std::string_view text(reinterpret_cast<const char *>(data), size);
  size_t line = text.find("\n---\n");
  if (line == text.npos)
    return 0;
  Problem problem;
  if (!parseGraph(text.substr(0, line), "graph", problem.graph).empty() ||
      !parseMachine(text.substr(line + 5), "machine", problem.machine).empty())
    return 0;
  // Large machines are slow, not wrong.
  if (problem.machine.devices.size() > 8 || problem.graph.ops.size() > 64)
    return 0;
  PlaceOptions options;
  const auto &placers = placerNames();
  options.placer = placers[size % placers.size()];
  constexpr Objective objectives[] = {Objective::Makespan, Objective::MaxLoad,
                                      Objective::Period};
  options.objective = objectives[size / placers.size() % 3];
  if (size % 3 == 0)
    options.grouping.clear();
  options.budget = size % 5 ? Budget::ofEvaluations(100) : Budget::none();
  options.expert = {{"[a-c]", problem.machine.devices.empty()
                                  ? ""
                                  : problem.machine.devices.back().name}};
  PlaceResult result = place(problem, options);
  bool internal = result.error.find("internal error") != std::string::npos ||
                  result.error.find("placement failed") != std::string::npos;
  if (internal ||
      (result.placement ? !verify(problem, *result.placement).empty()
                        : result.error.empty()))
    std::abort();
  return 0;
}

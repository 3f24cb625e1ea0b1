//===- FitMemory.cpp - Graphs that do not fit as they are -----------------===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "FitMemory.h"
#include "Baechi/Placement/Model/Pool.h"
#include "Baechi/Placement/Model/Text.h"
#include "Baechi/Placement/Session/PlaceBriefly.h"

#include <fmt/format.h>

#include <limits>

using namespace baechi::placement;

/// Whether \p problem is placed where no memory is too small.
static bool fitsAmpleMemory(Problem problem, PlaceOptions options) {
  constexpr int64_t ample = std::numeric_limits<int64_t>::max() / 4;
  for (Device &device : problem.machine.devices)
    device.memory = ample;
  options.budget = Budget::none();
  return placeBriefly(problem, options).placement.has_value();
}

std::string adviseFit(const Problem &problem, const PlaceOptions &options) {
  const Machine &machine = problem.machine;
  if (options.objective != Objective::Makespan || machine.nodes ||
      !check(problem).empty() || !fitsAmpleMemory(problem, options))
    return "";
  MemoryFloor floor = memoryFloor(problem.graph);
  int64_t memory = computingBytes(machine);
  if (numComputing(machine) == 1 && floor.bytes > memory)
    return fmt::format(
        "\nnor would it if operators ran again or tensors waited in a pool: "
        "'{}' by itself needs {} bytes ({}) with what is resident, of {} ({})",
        problem.graph.ops[floor.op].name, floor.bytes, bytesText(floor.bytes),
        memory, bytesText(memory));
  bool hasPool = !poolsOf(machine).empty();
  return fmt::format("\nit may fit where operators run again{}: "
                     "--fit-memory=auto{} (--sweep-fit says what that takes)",
                     hasPool ? " and tensors wait in the pool" : "",
                     hasPool ? ""
                             : ", and beside a pool, as MACHINE+pool:4GiB, "
                               "where tensors wait there");
}

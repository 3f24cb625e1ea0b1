//===- LeastMemory.cpp - How little memory will do --------------*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Study/LeastMemory.h"
#include "Memory/Memory.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <chrono>

using namespace baechi::placement;
using namespace baechi::placement::study;

namespace {

class Bisection {
public:
  Bisection(Problem &problem, const MachineVariants &variants, int32_t devices,
            const PlaceOptions &options, std::optional<Placement> &found)
      : problem(problem), variants(variants), devices(devices),
        options(options), found(found) {
    // The search is for speed, not for room.
    this->options.budget = Budget::ofEvaluations(1);
  }

  LeastMemory run(int64_t enough);

private:
  int64_t proven(int64_t enough);
  bool fits(int64_t memory);

  Problem &problem;
  const MachineVariants &variants;
  int32_t devices;
  PlaceOptions options;
  std::optional<Placement> &found;
  LeastMemory result;
};

/// The smallest memory below \p enough that cannot be proven too small.
int64_t Bisection::proven(int64_t enough) {
  problem.machine = variants.make(devices, enough, 1);
  Model model(problem);
  int64_t least = 0, most = enough;
  while (least < most) {
    int64_t middle = least + (most - least) / 2;
    for (int32_t d = 0; d < devices; ++d)
      problem.machine.devices[d].memory = middle;
    if (memory::proveInfeasible(problem, model).why.empty())
      most = middle;
    else
      least = middle + 1;
  }
  return least;
}

/// Tries a memory, with all candidates. A placement that is found often needs
/// even less.
bool Bisection::fits(int64_t memory) {
  problem.machine = variants.make(devices, memory, 1);
  ++result.tried;
  PlaceResult placed = place(problem, options);
  if (!placed.placement) {
    result.problem = std::move(placed.error);
    return false;
  }
  int64_t peak = 0;
  for (int32_t d = 0; d < devices; ++d)
    peak = std::max(peak, placed.usage[d].peakBytes);
  result.bytes = peak;
  result.makespanNs = placed.placement->makespanNs;
  found = std::move(placed.placement);
  return true;
}

LeastMemory Bisection::run(int64_t enough) {
  auto begin = std::chrono::steady_clock::now();
  result.devices = devices;
  problem.machine = variants.make(devices, enough, 1);
  if (auto errors = check(problem); !errors.empty()) {
    result.problem = fmt::format("{}", fmt::join(errors, "; "));
    return result;
  }
  result.provenBytes = proven(enough);
  if (fits(enough)) {
    int64_t least = result.provenBytes - 1; // too small, for all we know
    constexpr int64_t steps = 50;           // of two per cent
    while (*result.bytes - least >
           std::max<int64_t>(1, *result.bytes / steps)) {
      int64_t middle = least + (*result.bytes - least) / 2;
      if (!fits(middle))
        least = middle;
    }
    // So close, it may be reached.
    if (*result.bytes > result.provenBytes &&
        *result.bytes - result.provenBytes <= *result.bytes / steps)
      fits(result.provenBytes);
    result.problem.clear();
  }
  std::chrono::duration<double> seconds =
      std::chrono::steady_clock::now() - begin;
  result.seconds = seconds.count();
  return result;
}

} // namespace

LeastMemory baechi::placement::study::leastMemory(
    Problem &problem, const MachineVariants &variants, int32_t devices,
    int64_t enough, const PlaceOptions &options,
    std::optional<Placement> &found) {
  return Bisection(problem, variants, devices, options, found).run(enough);
}

//===- GpuRun.cpp - How long a GPU takes for a run of operators -*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Baechi/Analysis/GpuRun.h"
#include "llvm/ADT/STLExtras.h"
#include <algorithm>
#include <cmath>
#include <limits>

using namespace baechi;

namespace {
struct State {
  /// Of its time alone.
  double leftNs = 0;
  /// Of the GPU.
  double share = 1;
  /// Operators that it follows and that have not ended.
  size_t waitsFor = 0;
  std::vector<size_t> followers;
};

std::vector<State> orderByConflicts(llvm::ArrayRef<GpuOperator> run) {
  std::vector<State> states(run.size());
  support::Conflicts conflicts;
  for (auto [number, op] : llvm::enumerate(run)) {
    states[number].leftNs = double(op.ns);
    states[number].share = shareOfGpu(op);
    std::vector<size_t> after = conflicts.add(op.accesses);
    states[number].waitsFor = after.size();
    for (size_t earlier : after)
      states[earlier].followers.push_back(number);
  }
  return states;
}
} // namespace

double baechi::shareOfGpu(const GpuOperator &op) {
  return op.blocks > 0
             ? std::min(1.0, double(op.blocks) / double(blocksThatFill))
             : 1;
}

std::vector<SimulatedInterval>
baechi::simulateGpuRun(llvm::ArrayRef<GpuOperator> run) {
  std::vector<State> states = orderByConflicts(run);
  std::vector<SimulatedInterval> times(run.size());
  std::vector<size_t> running;
  double now = 0;
  auto begin = [&](size_t number) {
    times[number].start = std::llround(now);
    running.push_back(number);
  };
  for (size_t number = 0; number < states.size(); ++number)
    if (states[number].waitsFor == 0)
      begin(number);
  while (!running.empty()) {
    double asked = 0, next = std::numeric_limits<double>::max();
    for (size_t number : running) {
      asked += states[number].share;
      next = std::min(next, states[number].leftNs);
    }
    now += next * std::max(1.0, asked);
    // The shortest ends here, whatever is lost to rounding.
    std::vector<size_t> ended;
    llvm::erase_if(running, [&](size_t number) {
      states[number].leftNs -= next;
      if (states[number].leftNs > 1e-6)
        return false;
      ended.push_back(number);
      return true;
    });
    for (size_t number : ended) {
      times[number].end = std::llround(now);
      for (size_t follower : states[number].followers)
        if (--states[follower].waitsFor == 0)
          begin(follower);
    }
  }
  return times;
}

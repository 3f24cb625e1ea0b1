//===- Rounds.h - When which code is timed, and how often -------*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Times pieces of code in rounds, within a budget: the costliest first, slow
/// ones less often, and those again that other work disturbed. Knows nothing of
/// kernels; its clocks are given.
///
//===----------------------------------------------------------------------===//
#ifndef BAECHI_COSTS_MEASURE_ROUNDS_H
#define BAECHI_COSTS_MEASURE_ROUNDS_H

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/STLFunctionalExtras.h"
#include "llvm/ADT/SmallVector.h"
#include <cstdint>
#include <functional>
#include <limits>
#include <vector>

namespace baechi {

/// Nanoseconds since some time, of the world and of what a thread, or more than
/// one, computed.
struct Clocks {
  std::function<double()> wall, cpu;

  static Clocks ofThisThread();
  static Clocks ofThisProcess();
  /// Of what computes elsewhere: nothing is taken for disturbed.
  static Clocks ofTheWorld();
};

/// True when so much of the time went to somebody else that it is not the
/// code's: the thread was interrupted. \p idleNs: what nobody computes in it
/// anyway.
bool isDisturbed(double wallNs, double cpuNs, double idleNs = 0);

struct RoundOptions {
  /// Code is timed for as long and as often as this, at least, where the budget
  /// suffices; a third of it where an alternative turns out to be much faster.
  double secondsEach = 0.03;
  int64_t samplesEach = 9;
  /// Nothing takes many times longer than this: slow code gets fewer samples.
  double mostSecondsEach = 0.3;
  /// All of it: what was not begun by then is left out. The budget is at least
  /// the floor, and more for slow steps: so many of them, as long as the times
  /// known until then make the estimated step.
  double floorSeconds = std::numeric_limits<double>::infinity();
  double steps = 0;
  double estimatedStepNs = 0;
  /// The cheapest that make less than this share of the step together are not
  /// worth it.
  double leastShare = 0;
};

/// One code, and what is found out about it.
struct TimedCode {
  /// Alternatives of one computation share it; they stand side by side, and
  /// each of them is timed or none.
  size_t computation = 0;
  /// An execution of the computation and all of them in a step, estimated.
  double estimatedNs = 0, weightNs = 0;

  /// A call each, undisturbed ones where there are any; of disturbed ones what
  /// the thread computed.
  std::vector<double> samples = {};
  /// No sample was undisturbed.
  bool disturbed = false;
  /// There is no memory for what it works on.
  bool impossible = false;

  double fastest() const;
};

/// Readies the code of this number and gives what calls it, until it is asked
/// for the next; empty where there is no memory.
using PrepareCode = llvm::function_ref<std::function<void()>(size_t)>;

/// Times \p codes in three rounds, all others in between: a processor's clock
/// and its neighbours change from one second to the next, and times are
/// compared with each other. \p before is told of each code, and how many are
/// done by then; false ends all, and gives false.
bool timeInRounds(llvm::MutableArrayRef<TimedCode> codes,
                  const RoundOptions &options, const Clocks &clocks,
                  PrepareCode prepare, llvm::function_ref<bool(size_t)> before);

/// The numbers of \p codes that make enough of the step and whose first round
/// may fit into the budget, costliest first, those of a computation together;
/// the others need not be compiled.
llvm::SmallVector<size_t> worthTiming(llvm::ArrayRef<TimedCode> codes,
                                      const RoundOptions &options);

} // namespace baechi

#endif // BAECHI_COSTS_MEASURE_ROUNDS_H

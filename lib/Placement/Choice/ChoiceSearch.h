//===- ChoiceSearch.h - Good choices of a core ------------------*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef BAECHI_LIB_PLACEMENT_CHOICE_CHOICESEARCH_H
#define BAECHI_LIB_PLACEMENT_CHOICE_CHOICESEARCH_H

#include "Choice/Dual.h"
#include "Choice/WorkMeter.h"
#include "Model/Random.h"
#include <cmath>

namespace baechi::placement::choice {

/// Takes turns between the dual, whose labels and prices lead to where good
/// choices are, and making choices of them that keep the limit.
class ChoiceSearch {
public:
  ChoiceSearch(const Core &core, uint64_t seed, WorkMeter &meter,
               std::function<void(const Strategies &)> improved);

  /// Ends when the budget is spent, or the bound is met.
  void run();

  bool hasChoice() const { return std::isfinite(bestCost); }
  const Strategies &choice() const { return bestChoice; }
  /// Below the cost of every choice that keeps the limit, in whole units.
  double bound() const;
  /// There is no choice that keeps the limit: even the dearest costs less than
  /// the bound.
  bool isInfeasible() const;

private:
  void warmUp();
  void attempt();
  bool isDone() const;

  const Core &core;
  WorkMeter &meter;
  Random random;
  Dual dual;
  std::function<void(const Strategies &)> improved;
  Strategies bestChoice;
  double bestCost;
  double dearest; ///< no choice without forbidden costs is dearer
};

} // namespace baechi::placement::choice

#endif // BAECHI_LIB_PLACEMENT_CHOICE_CHOICESEARCH_H

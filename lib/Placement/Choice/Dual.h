//===- Dual.h - Prices for bytes, and a bound -------------------*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// The Lagrangian dual of the limit: each slot has a price for a byte held in
/// it, and the least cost with the prices, less what the whole capacity costs
/// at them, bounds the cost of every choice that keeps the limit. Messages
/// bound that least cost; the prices rise where their labels hold too much and
/// fall elsewhere (a subgradient method with Polyak's step and a smoothed
/// direction; Camerini, Fratta and Maffioli 1975).
///
//===----------------------------------------------------------------------===//
#ifndef BAECHI_LIB_PLACEMENT_CHOICE_DUAL_H
#define BAECHI_LIB_PLACEMENT_CHOICE_DUAL_H

#include "Choice/Messages.h"

namespace baechi::placement::choice {

class Dual {
public:
  explicit Dual(const Core &core);

  /// A pass in each direction at the prices as they are. Returns its bound.
  double pass();
  /// Passes, then other prices. \p target is a cost that can be reached, the
  /// best one known.
  void step(double target);

  /// The best bound so far.
  double bound() const { return best; }
  /// What the last pass chose; it may exceed the limit.
  const Strategies &labels() const { return chosen; }
  /// Node costs with the prices of the last step.
  const Costs &priced() const { return pricedCosts; }
  /// Entries that a step looks at.
  uint64_t work() const { return 2 * messages.work() + memberEntries; }

private:
  void move(double target);

  const Core &core;
  Messages messages;
  std::vector<double> prices, bestPrices, direction;
  Costs pricedCosts;
  Strategies chosen;
  double best;
  double latest;
  double scale = 0.5; ///< of the step
  int32_t failures = 0;
  uint64_t memberEntries = 0;
};

} // namespace baechi::placement::choice

#endif // BAECHI_LIB_PLACEMENT_CHOICE_DUAL_H

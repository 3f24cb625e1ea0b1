//===- Messages.h - Bounds by passing messages ------------------*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Sequential tree-reweighted message passing (TRW-S; Kolmogorov 2006): costs
/// move between nodes and tables, which changes no choice's cost, until the
/// least of each part adds up to a good lower bound.
///
//===----------------------------------------------------------------------===//
#ifndef BAECHI_LIB_PLACEMENT_CHOICE_MESSAGES_H
#define BAECHI_LIB_PLACEMENT_CHOICE_MESSAGES_H

#include "Choice/Core.h"

namespace baechi::placement::choice {

class Messages {
public:
  explicit Messages(const Core &core);

  /// One pass through the nodes with these costs, forward and backward in turn.
  /// Returns a bound below the cost of every choice. Where \p choice is given,
  /// each node takes what is best beside those before it.
  double pass(const Costs &costs, Strategies *choice);

  /// After a pass: by how much the bound rises when a node takes a strategy.
  void excess(const Costs &costs, Costs &by) const;

  /// Entries that a pass looks at.
  uint64_t work() const { return entries; }

private:
  struct Link {
    int32_t node;
    const double *table; ///< [strategy of the neighbour][own strategy]
    int32_t in;          ///< where what the neighbour sends is
    int32_t out;         ///< where what it is sent is
  };
  bool isLater(int32_t other, int32_t i) const {
    return isForward ? other > i : other < i;
  }
  double share(int32_t i) const;

  const Core &core;
  std::vector<std::vector<Link>> links;
  std::vector<double> sent;
  Costs belief;
  std::vector<double> scratch;
  bool isForward = false;
  uint64_t entries = 0;
};

} // namespace baechi::placement::choice

#endif // BAECHI_LIB_PLACEMENT_CHOICE_MESSAGES_H

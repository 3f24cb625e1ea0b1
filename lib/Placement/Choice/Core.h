//===- Core.h - What is left of a choice program ----------------*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// The shrunken network in the form that searches read: nodes without gaps in
/// their numbers, and every table for both of its ends.
///
//===----------------------------------------------------------------------===//
#ifndef BAECHI_LIB_PLACEMENT_CHOICE_CORE_H
#define BAECHI_LIB_PLACEMENT_CHOICE_CORE_H

#include "Choice/Network.h"

namespace baechi::placement::choice {

/// A strategy of each node, or costs of each node's strategies.
using Strategies = std::vector<int32_t>;
using Costs = std::vector<std::vector<double>>;

/// A neighbour, and what the node's strategies cost beside each of its.
struct Neighbour {
  int32_t node;
  const double *table; ///< [strategy of the neighbour][own strategy]
};

class Core {
public:
  explicit Core(const Network &network);
  Core(const Core &) = delete;
  Core &operator=(const Core &) = delete;

  size_t size() const { return costs.size(); }
  int32_t strategies(int32_t i) const {
    return static_cast<int32_t>(costs[i].size());
  }
  /// Cost of a choice: with these node costs and the tables.
  double cost(const Strategies &choice, const Costs &nodeCosts) const;
  /// Bytes in each slot.
  std::vector<double> usage(const Strategies &choice) const;
  /// What each strategy of a node costs in tables beside its neighbours.
  void beside(int32_t i, const Strategies &choice,
              std::vector<double> &sums) const;
  /// Calls \p visit with every node and member that hold bytes in a slot.
  template <typename Visitor>
  void visitAlive(int32_t slot, Visitor visit) const {
    for (auto [node, member] : alive[slot / slotsPerBlock]) {
      const Member &at = members[node][member];
      if (at.begin <= slot && slot < at.end)
        visit(node, at);
    }
  }
  /// Node costs with each slot's price for the bytes held in it.
  void price(const std::vector<double> &prices, Costs &priced) const;
  /// A choice of the core as one of the whole program.
  Choice expand(const Strategies &choice) const;

  Costs costs;
  std::vector<std::vector<Neighbour>> neighbours;
  std::vector<std::vector<Member>> members;
  std::vector<double> capacity; ///< by slot
  double constant;

private:
  static constexpr int32_t slotsPerBlock = 64;

  const Network &network;
  /// Node and number of the members of each block of slots.
  std::vector<std::vector<std::pair<int32_t, int32_t>>> alive;
  std::vector<int32_t> nodeOf;
  std::vector<double> tables;
};

} // namespace baechi::placement::choice

#endif // BAECHI_LIB_PLACEMENT_CHOICE_CORE_H

//===- Descent.h - Choices within the limit ---------------------*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef BAECHI_LIB_PLACEMENT_CHOICE_DESCENT_H
#define BAECHI_LIB_PLACEMENT_CHOICE_DESCENT_H

#include "Choice/Core.h"
#include "Choice/UsageTree.h"
#include "Choice/WorkMeter.h"
#include "Model/Random.h"

namespace baechi::placement::choice {

/// Makes single nodes take other strategies: until the limit is kept, and then
/// as long as it stays so and the cost falls.
class Descent {
public:
  Descent(const Core &core, const Strategies &start, WorkMeter &meter);

  /// Gives strategies up that are the cheapest to give up for the bytes that
  /// they free in the fullest slot, costs counted with slots' prices. Returns
  /// whether the limit is kept then.
  bool repair(const Costs &priced);
  /// Takes what costs less and fits, in a random order, until nothing does.
  void descend(Random &random);
  bool fits() const { return tree.most() <= 0; }

  const Strategies &choice() const { return chosen; }

  void change(int32_t node, int32_t strategy);
  /// What the choice costs more than at the last commit, without prices.
  double costChange() const;
  /// Forgets how the choice was before.
  void commit();
  /// Takes back what was changed since the last commit.
  void rollBack();

private:
  /// A strategy to take, and what it costs for each byte that it frees.
  struct Move {
    double score;
    int32_t node;
    int32_t strategy;
    bool operator>(const Move &other) const {
      return score != other.score ? score > other.score : node > other.node;
    }
  };

  Move cheapest(int32_t node, int32_t slot, double excess, const Costs &priced);
  bool relieve(int32_t slot, double excess, const Costs &priced);
  const std::vector<double> &beside(int32_t node);

  const Core &core;
  Strategies chosen;
  UsageTree tree;
  WorkMeter &meter;
  Strategies before;            ///< of what changed since the commit; else -1
  std::vector<int32_t> changed; ///< which those are
  std::vector<double> freed;
  Costs besideSums; ///< of tables; empty where a neighbour has changed
};

} // namespace baechi::placement::choice

#endif // BAECHI_LIB_PLACEMENT_CHOICE_DESCENT_H

//===- Coarsen.h - Models of fewer, larger nodes ----------------*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef BAECHI_LIB_PLACEMENT_COARSEN_H
#define BAECHI_LIB_PLACEMENT_COARSEN_H

#include "Model/Model.h"

#include <utility>

namespace baechi::placement::grouping {

/// Disjoint sets of ids that keep the smallest id as their name.
class DisjointSets {
public:
  explicit DisjointSets(int32_t size);
  int32_t find(int32_t id);
  /// Joins two sets and returns the name of the result.
  int32_t join(int32_t a, int32_t b);
  /// Consecutive ids for the sets, in order of their names.
  std::vector<int32_t> number(int32_t &count);

private:
  std::vector<int32_t> parent;
};

/// How a model is made coarser.
struct Coarsening {
  std::vector<int32_t> node; ///< fine node -> coarse node
  int32_t numNodes = 0;
  std::vector<Unit> unit; ///< fine unit -> coarse unit
  int32_t numUnits = 0;

  static Coarsening identity(const Model &model);
};

/// The coarse model. A node runs its members in a row; tensors that do not
/// leave it count as its scratch memory, results that live to the end of the
/// step as resident bytes. Good enough to place by; schedules are always
/// judged on the fine model.
Model coarsen(const Model &fine, const Coarsening &coarsening);

/// The fine assignment that a coarse one stands for.
Assignment expand(const Coarsening &coarsening, const Assignment &coarse);

} // namespace baechi::placement::grouping

#endif // BAECHI_LIB_PLACEMENT_COARSEN_H

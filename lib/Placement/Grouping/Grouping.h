//===- Grouping.h - What stays together -------------------------*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Baechi's graph optimisations (Jeon et al., SoCC 2020, section 3.3), bounded
/// so that no group swallows the model, and fusion that never makes a cycle.
///
//===----------------------------------------------------------------------===//
#ifndef BAECHI_LIB_PLACEMENT_GROUPING_H
#define BAECHI_LIB_PLACEMENT_GROUPING_H

#include "Grouping/Coarsen.h"

#include <string>

namespace baechi::placement::grouping {

/// What a group may do and hold at the most.
struct MergeLimits {
  int64_t work = 0;     ///< nanoseconds
  int64_t resident = 0; ///< bytes

  /// A share of all work and one of the smallest device's memory.
  static MergeLimits ofShares(const Model &model, double workShare,
                              double memoryShare);
};

/// Units joined into larger ones as long as the result has a device and keeps
/// the limits.
class UnitMerger {
public:
  UnitMerger(const Model &model, MergeLimits limits);
  UnitMerger(const Model &model, double workShare, double memoryShare)
      : UnitMerger(model,
                   MergeLimits::ofShares(model, workShare, memoryShare)) {}
  /// True when the two are one unit afterwards. Unless \p mayNarrow only those
  /// that may use the same devices: what only a host can run must not keep its
  /// readers there.
  bool join(Unit a, Unit b, bool mayNarrow = false);
  Unit find(Unit u) { return sets.find(u); }
  int64_t workOf(Unit u) { return work[sets.find(u)]; }
  /// A set per unit, numbered from 0.
  std::vector<Unit> number(int32_t &count) { return sets.number(count); }

private:
  int32_t numDevices;
  DisjointSets sets;
  std::vector<int64_t> work, resident;
  std::vector<uint8_t> allowed;
  MergeLimits limits;
};

/// An operator below this share of all work is no choice of its own.
constexpr double freeShare = 1.0 / 20000;

/// Joins what it costs nothing to keep together: a short operator (at most
/// \p share of all work) joins its only consumer when its operands take no
/// longer to move than its results, or its only source in the opposite case.
/// Baechi's co-placement without that condition strands recurrences.
void joinFreely(const Model &model, double share, Coarsening &coarsening);

/// Fusion: contracts directly connected nodes of one unit when no other path
/// joins them. The topological order is kept up to date with every contraction
/// (Pearce & Kelly 2006), so that the search for another path looks only at
/// what lies between the two, up to a bound. Another unit may be made to wait
/// for at most \p delayShare of all work.
void fuse(const Model &model, Coarsening &coarsening,
          double delayShare = 1.0 / 2000);

} // namespace baechi::placement::grouping

#endif // BAECHI_LIB_PLACEMENT_GROUPING_H

//===- LookAhead.h - What a group brings to its device ----------*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Jeon et al. (SoCC 2020) charge a group's memory when its first operator
/// fixes the device of all of it. Here its time and its traffic are charged
/// then, too: the operator may start first on a device that the group's other
/// operators will wait for, or to which all that they read must be moved.
///
//===----------------------------------------------------------------------===//

#ifndef BAECHI_LIB_PLACEMENT_LOOKAHEAD_H
#define BAECHI_LIB_PLACEMENT_LOOKAHEAD_H

#include "Placers/PartialSchedule.h"

#include <vector>

namespace baechi::placement::placers {

class LookAhead {
public:
  LookAhead(const Model &model, const PartialSchedule &schedule);

  /// What putting the undecided unit \p u on \p d costs beyond its first
  /// operator's start. Linear in the unit's edges.
  int64_t cost(Unit u, int32_t d);
  /// Must be told before a node is placed on \p d, and of units that it brings
  /// along.
  void decided(Unit u, int32_t d) { work[d] += unitTime(u, d); }
  /// Must be told once a node is placed on \p d.
  void placed(int32_t node, int32_t d);

private:
  int64_t unitTime(Unit u, int32_t d) const;
  int64_t traffic(Unit u, int32_t d);

  const Model &model;
  const PartialSchedule &schedule;
  std::vector<int64_t> work; ///< per device: of decided units, not yet placed
  std::vector<int32_t> mark; ///< per tensor: the last count that had it
  int32_t stamp = 0;
};

} // namespace baechi::placement::placers

#endif // BAECHI_LIB_PLACEMENT_LOOKAHEAD_H

//===- Splits.h - Contiguous splits by dynamic programming ------*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// A topological order of the units is cut into consecutive pieces, one a
/// device, by a dynamic program over (devices used, units placed). Tarnawski
/// et al. (NeurIPS 2020, section 5.1.1) run it over all downward closed sets
/// where these are few, and over the prefixes of one order where they are not
/// ("DPL"); here it is the latter, over several orders.
///
//===----------------------------------------------------------------------===//
#ifndef BAECHI_LIB_PLACEMENT_SPLITS_H
#define BAECHI_LIB_PLACEMENT_SPLITS_H

#include "Schedule/Schedule.h"

namespace baechi::placement::placers {

enum class SplitGoal {
  MaxLoad, ///< the largest load of a piece is as small as possible
  Total,   ///< computing and transfers of all pieces together are
};

struct SplitOptions {
  SplitGoal goal = SplitGoal::MaxLoad;
  /// Orders beyond the first few come from depth-first walks at random.
  int32_t orders = 4;
  uint64_t seed = 1;
  /// Of the bytes that only pass through a device (outputs, scratch, copies),
  /// the share that a piece is charged.
  double passingShare = 0;
  /// Besides the best splits over all devices those over fewer of them.
  bool fewerDevices = false;
};

/// The best split of every order, best first; none where no split keeps pins
/// and memories. Transfers count at the mean of all links. Long orders are cut
/// only between blocks of about the same work. Time is about linear in the
/// model, plus a bounded amount.
std::vector<Assignment> contiguousSplits(const Model &model,
                                         const SplitOptions &options);

/// Of splits for both goals and over more and fewer devices, the \p count of
/// least makespan, best first: starts for placements of chains, and where the
/// memories force a cut. The memories of what passes through a device are
/// looked at roughly, if at all.
std::vector<Assignment> fastestSplits(const Model &model, Scheduler &scheduler,
                                      size_t count);

} // namespace baechi::placement::placers

#endif // BAECHI_LIB_PLACEMENT_SPLITS_H

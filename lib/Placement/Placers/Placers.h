//===- Placers.h - The constructive placers ---------------------*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// m-TOPO, m-ETF and m-SCT of Jeon et al., "Baechi: Fast Device Placement of
/// Machine Learning Graphs" (SoCC 2020; arXiv 2301.08695), on dense ids.
///
//===----------------------------------------------------------------------===//
#ifndef BAECHI_LIB_PLACEMENT_PLACERS_H
#define BAECHI_LIB_PLACEMENT_PLACERS_H

#include "Model/Model.h"

#include <span>
#include <string>

namespace baechi::placement::placers {

/// The cap up to which m-TOPO fills a device.
enum class Fill {
  /// total / devices plus the largest unit, never above the device's memory.
  /// Where a device is smaller than that share, the others share what it
  /// cannot take.
  Uniform,
  /// The device's own memory: the next device is opened when one is full.
  NonUniform,
};

/// m-TOPO: fills device after device in topological order of the units' first
/// nodes. A unit needs its resident bytes and all its outputs, as if they were
/// never freed; where nothing holds memory it needs its work, and the uniform
/// cap is a share of that. A unit that finds no room goes to the device it may
/// use that has the most left.
Assignment fillInOrder(const Model &model, Fill fill = Fill::Uniform);

/// Whether m-ETF looks beyond a unit's first operator.
enum class Ahead {
  No,
  Always,
  /// Not where a device takes the favourite child of its last operator.
  UnlessFavourite,
};

/// m-ETF (Hwang et al. 1989, with memory): of all ready operators and devices,
/// the pair that can start first. A group's first operator fixes the device
/// for all of it and charges its memory then. With a favourite child per node
/// (-1: none) it is m-SCT's second phase: a device waits for its last
/// operator's favourite child unless an urgent operator is there.
///
/// With \p limited false memory is not looked at: the plain ETF (Hwang et al.
/// 1989) and SCT (Hanen & Munier 1995), whose result may not fit.
///
/// Exact: what is taken is first under the transfers booked so far, then the
/// most urgent (longest path to the end), then the smallest node and device.
/// With \p urgencyFactor (0 to 1 per node) urgencies are multiplied by it.
/// With \p ahead a unit's first operator goes where its start and what the
/// whole unit brings there cost least (LookAhead.h). Near-linear in operators
/// and edges for each device (ReadyQueue.h).
struct EarliestStart {
  Assignment device;
  std::vector<int64_t> start;
};
EarliestStart earliestStart(const Model &model,
                            std::span<const int32_t> favouriteChild = {},
                            bool limited = true,
                            std::span<const double> urgencyFactor = {},
                            Ahead ahead = Ahead::No);

} // namespace baechi::placement::placers

#endif // BAECHI_LIB_PLACEMENT_PLACERS_H

//===- ReadyQueue.h - What a device could start next ------------*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef BAECHI_LIB_PLACEMENT_READYQUEUE_H
#define BAECHI_LIB_PLACEMENT_READYQUEUE_H

#include "Placers/PartialSchedule.h"
#include "Placers/UrgencyTree.h"

#include <span>

namespace baechi::placement::placers {

/// The ready operators of one device, of which it gives the one that can start
/// first, the most urgent of several.
///
/// Operators whose transfers wait for a link all get later when the link gets
/// busier. So that none must be touched then, those that wait for the same link
/// are kept by the length of their transfers (Arrival), in a tree that also
/// knows the most urgent whose transfers would be over before the device is
/// free. All others are kept by a time before which they cannot start; it is
/// corrected when they come up. An operator is looked at again only then, or
/// when another link has become the one that it waits for.
class ReadyQueue {
public:
  /// \p rank: where each node is among all, the most urgent first.
  ReadyQueue(const PartialSchedule &schedule, std::span<const int32_t> rank,
             int32_t device, int32_t numDevices)
      : schedule(schedule), rank(rank), device(device), waiting(numDevices) {}

  struct First {
    int32_t node = -1;
    int64_t start = 0;
  };

  /// Adds a node whose sources are placed or lazy, or one that is there
  /// already and may have become able to start earlier.
  void add(int32_t node);
  /// Must be told when the device's own time, or the home of a source of one of
  /// its nodes, has changed.
  void changed() { isCurrent = false; }
  /// Node -1: nothing is left.
  First first();

private:
  struct Timed {
    int64_t time;
    int32_t rank, node;
    /// For a heap whose top is the earliest, then the most urgent.
    bool operator<(const Timed &other) const {
      return std::tie(other.time, other.rank) < std::tie(time, rank);
    }
  };

  bool open(int32_t node) const { return schedule.open(node, device); }
  bool bestIsCurrent() const;
  void keep(int32_t node, int32_t nodeRank);
  void admitDue();
  bool findNow();
  bool findLater();
  void setBest(int32_t node, int64_t start);

  const PartialSchedule &schedule;
  std::span<const int32_t> rank;
  int32_t device;
  /// Not before a time; of available nodes the time is not used.
  std::vector<Timed> later, available;
  std::vector<Timed> due;           ///< taken out of `later` together
  std::vector<UrgencyTree> waiting; ///< per home: for the link from there
  First best;
  Arrival bestArrival;
  bool isCurrent = false;
  Arrival scratch;
};

} // namespace baechi::placement::placers

#endif // BAECHI_LIB_PLACEMENT_READYQUEUE_H

//===- Assigned.h - A small problem with its devices fixed ------*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// What is left to decide once every operator has its device: when operators
/// and transfers start, where a copy comes from, and which devices relay
/// tensors that they do not read themselves. The memory rules are those of
/// docs/formats.md: a device holds a tensor until its last use there.
///
//===----------------------------------------------------------------------===//
#ifndef BAECHI_LIB_PLACEMENT_EXACT_ASSIGNED_H
#define BAECHI_LIB_PLACEMENT_EXACT_ASSIGNED_H

#include "Exact/Instance.h"

#include <array>
#include <bitset>

namespace baechi::placement::exact {

using CopySet = std::bitset<maxCopies>;

/// A copy that a tensor may have on a device that does not produce it.
struct Copy {
  int32_t tensor, to;
  /// Index in `Assigned::moved` of the tensor.
  int32_t of;
  /// Operators on `to` that read it; none: it can only be passed on.
  OpSet readers;
  /// Where it may come from.
  DeviceSet sources;
  /// From its arrival to the end of the step, at the least.
  int64_t tail;
};

/// A tensor that other devices need.
struct Moved {
  int32_t tensor, home;
  /// Its copies are consecutive.
  int32_t firstCopy, endCopy;
};

/// What has been started, and ended, at one time.
struct Progress {
  OpSet started = 0, ended = 0;
  CopySet copyStarted, copyEnded;
  /// Where a started copy comes from.
  std::array<int8_t, maxCopies> source;
  /// Given up although others still need the tensor, to make room: a copy, or
  /// by index in `Assigned::moved` the tensor at home.
  CopySet dropped, homeDropped;
};

/// Ids of what transfers occupy are below this.
constexpr int32_t maxCarriers = maxDevices * maxDevices;

using Levels = std::array<int64_t, maxDevices>;

class Assigned {
public:
  Assigned(const Instance &instance, const Assignment &device);

  int64_t timeOf(int32_t node) const { return time[node]; }
  int64_t copyNs(const Copy &copy, int32_t from) const {
    return instance.model.transferNs(copy.tensor, from, copy.to);
  }
  /// What a transfer occupies under the link model, up to two ids; -1: nothing.
  std::pair<int32_t, int32_t> carriers(int32_t from, int32_t to) const;
  /// True when the tensor is needed somewhere that no transfer goes to yet.
  bool wanted(const Progress &at, int32_t movedIndex) const {
    return (neededOf[movedIndex] & ~at.copyStarted).any();
  }
  /// True when \p from has the whole tensor, to be passed on.
  bool holds(const Progress &at, int32_t movedIndex, int32_t from) const;
  /// Bytes on every device; with \p onlyCertain without what could be dropped.
  void levels(const Progress &at, Levels &level, bool onlyCertain) const;
  bool fits(const Progress &at, bool onlyCertain) const;

  /// Something that a device holds only for others, while another device holds
  /// it as well: a copy, or (`copy` < 0) a moved tensor at home.
  struct Droppable {
    int32_t copy, movedIndex;
  };
  std::vector<Droppable> droppable(const Progress &at, int32_t d) const;

  const Instance &instance;
  const Model &model;
  const Assignment device;
  std::vector<int64_t> time;
  /// From the start of an operator to the end of the step, at the least.
  std::vector<int64_t> tail;
  std::vector<Moved> moved;
  std::vector<Copy> copies;
  /// Per operator: the copies that it reads, and its sources on its own device.
  std::vector<std::vector<int32_t>> copiesRead;
  std::vector<OpSet> localSources;
  struct Signal {
    int32_t from, to;
    int64_t latency;
  };
  /// Control edges between devices.
  std::vector<std::vector<Signal>> signalsTo;
  std::vector<int64_t> longestSignal; ///< per sender
  /// The operator that must start before, as it could change places; -1: none.
  std::vector<int32_t> twinBefore;
  std::vector<CopySet> neededOf; ///< per moved tensor
  std::vector<int32_t> movedOf;  ///< per tensor; -1: stays at home
  /// True when all that ever comes to a device might not fit at once.
  std::array<bool, maxDevices> tight{};
  bool anyTight = false;
  /// False: two operators that depend on each other cannot.
  bool connected = true;

private:
  void findCopies();
  void findTails();
  bool heldForOthers(const Progress &at, int32_t movedIndex,
                     int32_t exceptCopy) const;
  bool isUsedAtHome(const Progress &at, int32_t tensor,
                    int32_t movedIndex) const;
  bool isUsedThere(const Progress &at, int32_t copy) const;
  bool leaves(const Progress &at, int32_t movedIndex, int32_t from) const;

  std::vector<OpSet> homeReaders;
  Levels resident{};
};

} // namespace baechi::placement::exact

#endif // BAECHI_LIB_PLACEMENT_EXACT_ASSIGNED_H

//===- Instance.h - A small problem for exact search ------------*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// What the exact search asks about a model again and again: sets of operators
/// as bits, the fastest chains of transfers, and what may change places without
/// changing anything.
///
//===----------------------------------------------------------------------===//
#ifndef BAECHI_LIB_PLACEMENT_EXACT_INSTANCE_H
#define BAECHI_LIB_PLACEMENT_EXACT_INSTANCE_H

#include "Schedule/Schedule.h"

#include <string>

namespace baechi::placement::exact {

/// Operators as bits.
using OpSet = uint32_t;
/// Devices as bits.
using DeviceSet = uint32_t;

constexpr int32_t maxOperators = 24;
constexpr int32_t maxDevices = 8;
/// Copies that may be made of tensors under one assignment.
constexpr int32_t maxCopies = 128;

/// Why the search does not take a model; empty when it does.
std::string whyTooLarge(const Model &model);

class Instance {
public:
  /// \p model is not too large and must outlive the instance.
  explicit Instance(const Model &model);

  /// The shortest time from a tensor's being complete on one device to its
  /// being complete on another, over any devices between; `never`: no way.
  int64_t pathNs(int32_t tensor, int32_t from, int32_t to) const {
    return path[(static_cast<size_t>(tensor) * numDevices + from) * numDevices +
                to];
  }
  /// True when exchanging the devices changes no time, link or memory.
  bool alike(int32_t a, int32_t b) const {
    return alikeDevices[a * numDevices + b] != 0;
  }

  /// True when exchanging the operators changes nothing; each is then a unit.
  bool twins(int32_t a, int32_t b) const;

  const Model &model;
  int32_t numNodes;
  int32_t numDevices;
  /// Per operator: all that must end before it starts, and the inverse.
  std::vector<OpSet> before, after;
  /// Per tensor: the operators that read it.
  std::vector<OpSet> users;
  /// Per operator: the next smaller operator in a unit of its own that it can
  /// change places with; -1: none.
  std::vector<int32_t> twin;
  /// Per operator: the bytes of its outputs on its own device.
  std::vector<int64_t> outputBytes;
  /// Tensors that hold bytes or are read: the others never matter.
  std::vector<int32_t> tensors;
  /// Bytes that no device can ever exceed, so that memory can be forgotten.
  bool memoryMatters = false;

private:
  void findPaths();
  void findTwins();
  void findAlikeDevices();

  std::vector<int64_t> path;
  std::vector<uint8_t> alikeDevices;
};

/// Calls \p visit for every member of a set, the smallest first.
template <typename Visit> void forEachBit(uint32_t set, Visit visit) {
  for (; set; set &= set - 1)
    visit(static_cast<int32_t>(__builtin_ctz(set)));
}

/// A job of one machine: ready at `head`, `length` long, and then at least
/// `tail` until the end of the step.
struct Job {
  int64_t head, length, tail;
};

/// The largest max(head) + sum(length) + max(tail) bound of a set of jobs that
/// one machine does one at a time: Jackson's preemptive schedule (Carlier,
/// "The one-machine sequencing problem", 1982, section 2). Sorts \p jobs.
int64_t oneMachineBound(std::vector<Job> &jobs);

} // namespace baechi::placement::exact

#endif // BAECHI_LIB_PLACEMENT_EXACT_INSTANCE_H

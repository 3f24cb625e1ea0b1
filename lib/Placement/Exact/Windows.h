//===- Windows.h - Bounds of assignments that are not complete --*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// The devices that every unit may still use, and what follows from them: a
/// lower bound of the objective, and devices that no placement better than a
/// cut-off can use.
///
//===----------------------------------------------------------------------===//
#ifndef BAECHI_LIB_PLACEMENT_EXACT_WINDOWS_H
#define BAECHI_LIB_PLACEMENT_EXACT_WINDOWS_H

#include "Baechi/Placement/Model/PlaceOptions.h"
#include "Exact/Instance.h"

namespace baechi::placement::exact {

/// Per unit: the devices that it may be on.
using Domains = std::vector<DeviceSet>;

class Windows {
public:
  Windows(const Instance &instance, Objective objective);

  /// Removes devices that no valid placement of an objective below \p cutoff
  /// can use until nothing changes, and raises \p bound to what all placements
  /// that are left must reach. False when none is left.
  bool narrow(Domains &domains, int64_t cutoff, int64_t &bound);

private:
  bool remove(Unit u, int32_t d);
  DeviceSet of(int32_t node) const { return (*domains)[model.unit[node]]; }
  bool fixed(int32_t node) const { return (of(node) & (of(node) - 1)) == 0; }
  bool isOn(int32_t node, int32_t d) const {
    return of(node) == DeviceSet(1) << d;
  }
  int64_t shortest(int32_t node) const;
  int64_t waitAlong(int32_t tensor, int32_t from, int32_t to) const;
  int64_t &headOf(int32_t i, int32_t d) { return head[i * numDevices + d]; }
  int64_t &tailOf(int32_t i, int32_t d) { return tail[i * numDevices + d]; }
  void heads(int32_t i, int32_t d);
  void tails(int32_t i, int32_t d);
  bool paths();
  bool machines();
  bool machine(int32_t d);
  bool links();
  bool addTransfers(int32_t tensor, std::vector<std::vector<Job>> &out,
                    std::vector<std::vector<Job>> &in,
                    std::vector<std::vector<Job>> &pair);
  bool sharedWork();
  bool memory();
  int64_t footprint(int32_t i, int32_t d) const;

  const Instance &instance;
  const Model &model;
  Objective objective;
  int32_t numDevices;
  /// Per operator: tensors of others that are alive while it runs, wherever
  /// they are, because it or a later operator reads them.
  std::vector<std::vector<int32_t>> aliveWith;

  Domains *domains = nullptr;
  int64_t cutoff = never;
  int64_t bound = 0;
  bool changed = false;
  bool empty = false;
  std::vector<int64_t> headsOfSet, tailsOfSet;
  std::vector<int64_t> head, tail; ///< [operator * devices + d], `never`: not
};

} // namespace baechi::placement::exact

#endif // BAECHI_LIB_PLACEMENT_EXACT_WINDOWS_H

//===- PeakEstimate.h - What an assignment asks of the memories -*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// For searches that ask thousands of times: bytes above the memories when the
/// nodes run one by one in one of a few good orders that are found once. Zero
/// means that `scheduleWithin` succeeds, as it looks at these orders as well;
/// more means little, the best order for an assignment may be another.
///
//===----------------------------------------------------------------------===//
#ifndef BAECHI_LIB_PLACEMENT_MEMORY_PEAKESTIMATE_H
#define BAECHI_LIB_PLACEMENT_MEMORY_PEAKESTIMATE_H

#include "Schedule/Schedule.h"

namespace baechi::placement::memory {

class PeakEstimate {
public:
  /// \p model must outlive the estimate.
  explicit PeakEstimate(const Model &model);
  /// The same with \p orders for what `leanOrders` finds, which takes a while.
  PeakEstimate(const Model &model, std::vector<std::vector<int32_t>> orders);

  /// Bytes above the memories, over all devices, in the order where these are
  /// fewest; ends with the first that fits. O(nodes + edges).
  int64_t excess(const Assignment &device);
  /// Of the last call: peak bytes of every device, and when it has them.
  const std::vector<int64_t> &peaks() const { return bestPeaks; }

  struct Moment {
    size_t order; ///< index of the order
    int32_t at;   ///< position in it
  };
  Moment peakOf(int32_t d) const { return {bestOrder, bestAt[d]}; }
  /// Per unit of \p device: bytes that device \p d holds for its sake at a
  /// moment, resident bytes included. What several need is divided.
  std::vector<int64_t> heldAt(Moment moment, const Assignment &device,
                              int32_t d);
  /// The orders of nodes that are looked at.
  const std::vector<std::vector<int32_t>> &nodeOrders() const { return orders; }

private:
  void addOrder(std::vector<int32_t> nodes);
  void begin(const Assignment &device);
  bool run(const Assignment &device, size_t order, int32_t end,
           int64_t least = never);
  int32_t &usesLeft(int32_t tensor, int32_t d) {
    return uses[static_cast<size_t>(tensor) * model.numDevices + d];
  }

  const Model &model;
  std::vector<std::vector<int32_t>> orders;
  std::vector<std::vector<int32_t>> places; ///< [order][node]
  std::vector<int64_t> bestPeaks, peak, level;
  std::vector<int32_t> bestAt, at;
  size_t bestOrder = 0;
  /// Of an assignment, whatever the order: at the start.
  std::vector<int64_t> firstLevel;
  std::vector<int32_t> allUses;
  std::vector<int32_t> uses;   ///< [tensor * devices + d]: those that are left
  std::vector<uint8_t> copied; ///< [tensor * devices + d]
};

} // namespace baechi::placement::memory

#endif // BAECHI_LIB_PLACEMENT_MEMORY_PEAKESTIMATE_H

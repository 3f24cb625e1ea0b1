//===- StartOrder.h - The schedule of an order of starts --------*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// A list scheduler never lets a device idle for something urgent that comes
/// soon, never lets a copy wait for room that another needs first, and never
/// relays. An order of all starts can say all of that: every node and transfer
/// starts as early as it can, but on no device, link or short memory before
/// what comes earlier in the order (a serial schedule generation scheme: Kelley
/// 1963; Kolisch, "Serial and parallel resource-constrained project scheduling
/// methods revisited", 1996). Some order gives an optimal schedule: that of its
/// own starts.
///
//===----------------------------------------------------------------------===//
#ifndef BAECHI_LIB_PLACEMENT_SEARCH_STARTORDER_H
#define BAECHI_LIB_PLACEMENT_SEARCH_STARTORDER_H

#include "Schedule/Schedule.h"

namespace baechi::placement::search {

/// What a schedule is made from. A transfer's index is
/// tensor * numDevices + the device it goes to.
struct StartPlan {
  std::vector<int32_t> device;      ///< per unit
  std::vector<int64_t> nodeKey;     ///< per node: smaller is earlier
  std::vector<int64_t> transferKey; ///< per transfer that is made
  /// What `via` may say instead of a device.
  static constexpr int32_t direct = -1, quickest = -2, noWay = -3, route = -4;
  /// Per transfer: the device that passes the tensor on. A way that does not
  /// exist is the quickest.
  std::vector<int32_t> via;
};

class StartOrder {
public:
  explicit StartOrder(const Model &model);

  struct Value {
    int64_t makespan = never; ///< ns; `never`: two devices cannot talk
    /// Bytes that were missing from the beginning and whenever something
    /// started, in shares of the device's memory; 0: the schedule fits.
    double excess = 0;
  };
  /// Schedules a plan. O(n log n) for a bounded number of devices.
  Value run(const StartPlan &plan);

  /// The schedule of the last run.
  Placement placement() const;
  /// Of the last run, its steps in the order they were taken: nodes, and
  /// numNodes + the index of a transfer.
  const std::vector<int32_t> &taken() const { return order; }
  bool isNode(int32_t step) const { return step < model.numNodes; }
  /// Where a transfer of the last run came from.
  int32_t sourceOf(int32_t transfer) const { return source[transfer]; }
  const Assignment &devices() const { return on; }

private:
  static constexpr int32_t gone = -1;
  struct Release {
    int64_t at, bytes;
    bool operator<(const Release &other) const { return at > other.at; }
  };
  struct Memory {
    int64_t level = 0, since = 0;
    std::vector<Release> releases; ///< a heap, the soonest first
    bool isTight = false;
  };
  struct Ready {
    int64_t key;
    int32_t step;
    bool operator<(const Ready &other) const {
      return std::tie(key, step) > std::tie(other.key, other.step);
    }
  };

  int32_t index(int32_t tensor, int32_t d) const {
    return tensor * model.numDevices + d;
  }
  bool prepare(const StartPlan &plan);
  int32_t quickestWay(int32_t tensor, int32_t home, int32_t to) const;
  bool addTransfers(const StartPlan &plan, int32_t tensor);
  void findTightMemories();
  void makeReady(int32_t step);
  void arrive(int32_t step, int64_t at);
  int64_t bytesOf(int32_t node, int64_t at);
  int64_t fit(int32_t d, int64_t from, int64_t bytes);
  void lack(int32_t d, int64_t bytes);
  void use(int32_t holding, int64_t until);
  void release(int32_t d, int64_t at, int64_t bytes);
  void takeNode(int32_t node);
  void takeTransfer(int32_t transfer);
  int64_t *carrier(int32_t from, int32_t to, bool second);

  const Model &model;
  const StartPlan *current = nullptr;
  Assignment on;
  std::vector<int32_t> source;               ///< per transfer; -1: not made
  std::vector<int32_t> made;                 ///< transfers
  std::vector<int32_t> waiting;              ///< per step
  std::vector<int64_t> earliest, begin, end; ///< per step
  std::vector<int32_t> usesLeft;             ///< [tensor * devices + d]
  std::vector<int64_t> lastUse;
  std::vector<Memory> memory; ///< per device
  std::vector<int64_t> deviceFree, linkFree;
  std::vector<Ready> ready; ///< a heap
  std::vector<int32_t> order;
  Value result;
};

} // namespace baechi::placement::search

#endif // BAECHI_LIB_PLACEMENT_SEARCH_STARTORDER_H

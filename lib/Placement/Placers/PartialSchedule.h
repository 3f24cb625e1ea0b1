//===- PartialSchedule.h - What has been placed so far ----------*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// The state of a constructive placer that appends operators to devices and
/// transfers to links: m-ETF and m-SCT (Jeon et al., SoCC 2020).
///
//===----------------------------------------------------------------------===//
#ifndef BAECHI_LIB_PLACEMENT_PARTIALSCHEDULE_H
#define BAECHI_LIB_PLACEMENT_PARTIALSCHEDULE_H

#include "Model/Model.h"

#include <algorithm>

namespace baechi::placement::placers {

/// When all that a node waits for can be on a device, as the links' use so far
/// allows: at `fixed`, or where that is later, `length` after the link from one
/// of the homes is free. Transfers for one node wait for each other; the sums
/// are in the lengths. Links only get busier, so the time only gets later, and
/// no wait need be looked at as long as another is known to last longer.
struct Arrival {
  struct Wait {
    int32_t home;
    int64_t length; ///< nanoseconds
  };
  int64_t fixed = 0; ///< `never`: two devices that must talk cannot
  std::vector<Wait> waits;
};

class PartialSchedule {
public:
  /// \p limited: within the devices' memories.
  PartialSchedule(const Model &model, bool limited);

  bool placed(int32_t node) const { return device[node] >= 0; }
  /// Parameters and inputs: they take no time and go where their first
  /// consumer goes.
  bool isLazy(int32_t node) const { return lazy[node] != 0; }
  /// True while \p node may go to \p d: it is not placed, its unit is not
  /// elsewhere, and the pair has not been ruled out.
  bool open(int32_t node, int32_t d) const { return isOpen[at(node, d)] != 0; }
  void ruleOut(int32_t node, int32_t d) { isOpen[at(node, d)] = 0; }

  /// The processor may bring what will be asked of a node soon: whether it is
  /// open and where its operands are; those; and what placing it asks.
  void fetchRow(int32_t node) const {
    __builtin_prefetch(&isOpen[at(node, 0)]);
    __builtin_prefetch(&model.operands.begin[node]);
  }
  void fetchOperands(int32_t node) const {
    for (int32_t t : model.operands[node])
      __builtin_prefetch(&tensors[t]);
  }
  void fetch(int32_t node) const;

  /// Of a node whose sources are placed or lazy. Linear in its operands.
  void arrivalOf(int32_t node, int32_t d, Arrival &arrival) const;
  /// When a wait on \p d is over.
  int64_t endOf(const Arrival::Wait &wait, int32_t d) const {
    return linkFree(wait.home, d) + wait.length;
  }
  /// The time of an arrival on \p d.
  int64_t timeOf(const Arrival &arrival, int32_t d) const;
  /// The time when all that \p node waits for can be on \p d.
  int64_t arrivalTime(int32_t node, int32_t d) const;
  /// From when on the link between two devices is free, under the link model.
  int64_t linkFree(int32_t from, int32_t to) const {
    return linkModel == LinkModel::Parallel
               ? pairFree[at(from, to)]
               : std::max(sendFree[from], receiveFree()[to]);
  }
  int64_t deviceFree(int32_t d) const { return free[d]; }

  /// True when \p d has the memory that placing \p node there takes at once:
  /// its scratch and results, the copies it needs, and all resident bytes of
  /// the units that it brings along.
  bool fits(int32_t node, int32_t d) const;
  int64_t room(int32_t d) const { return model.deviceMemory(d) - level[d]; }
  int32_t deviceOfUnit(Unit u) const { return unitDevice[u]; }

  /// Appends \p node to \p d, with its lazy sources and transfers.
  void place(int32_t node, int32_t d);
  /// Of the last `place`: the tensors that were copied to the device, and the
  /// units with lazy members that got their device.
  const std::vector<int32_t> &newCopies() const { return copied; }
  const std::vector<Unit> &newLazyUnits() const { return lazyUnits; }

  // The result; device -1: not placed.
  std::vector<int32_t> device;
  std::vector<int64_t> start;

private:
  /// What is asked together of a tensor that a node reads: in large models each
  /// question is a line of memory that no cache holds.
  struct alignas(32) Tensor {
    int32_t producer;
    int32_t home = -1; ///< its producer's device
    int32_t row = -1;  ///< of its copies; < 0: there is none
    int32_t usersLeft;
    int64_t finish = 0;   ///< of its producer
    int64_t transfer = 0; ///< over any link, where all are alike
  };

  size_t at(int32_t node, int32_t d) const {
    return static_cast<size_t>(node) * numDevices + d;
  }
  /// The device that a source is on, or would be, were its consumer on
  /// \p consumerDevice.
  int32_t homeOf(int32_t source, int32_t consumerDevice) const {
    return device[source] >= 0 ? device[source]
                               : futureHome(source, consumerDevice);
  }
  int32_t homeOf(const Tensor &tensor, int32_t consumerDevice) const {
    return tensor.home >= 0 ? tensor.home
                            : futureHome(tensor.producer, consumerDevice);
  }
  int32_t futureHome(int32_t source, int32_t consumerDevice) const;
  /// < 0: there is none.
  int64_t copyTime(const Tensor &tensor, int32_t d) const {
    return tensor.row < 0 ? -1 : rows[at(tensor.row, d)];
  }
  /// Of the transfers that bring a tensor from \p home to \p d.
  int64_t routeNs(int32_t t, const Tensor &tensor, int32_t home,
                  int32_t d) const {
    return linksAreAlike ? tensor.transfer : model.routeNs(t, home, d);
  }
  /// Of a sequential machine's device one engine sends and receives.
  const std::vector<int64_t> &receiveFree() const {
    return linkModel == LinkModel::Sequential ? sendFree : inFree;
  }
  void keepCopy(Tensor &tensor, int32_t d, int64_t time);
  void setLinkFree(int32_t from, int32_t to, int64_t time);
  int64_t book(int32_t node, int32_t d);
  void settleUnit(Unit u, int32_t d);
  void settle(int32_t node, int32_t d);
  void freeOperands(int32_t node);

  const Model &model;
  bool limited;       ///< memory can keep a node from a device
  bool countsBytes;   ///< someone asks for `room`
  bool linksAreAlike; ///< each pair of devices has one, all are of one class
  int32_t numDevices;
  std::vector<int64_t> finish;
  std::vector<Tensor> tensors;
  std::vector<uint8_t> lazy;
  std::vector<int32_t> unitDevice;
  std::vector<uint8_t> isOpen;      ///< [node * D + d]
  std::vector<int64_t> free, level; ///< per device
  /// From when on the link model's exclusive parts are free.
  LinkModel linkModel;
  std::vector<int64_t> sendFree, inFree; ///< per device
  std::vector<int64_t> pairFree;         ///< [from * D + to]
  /// Tensors with copies have a row of D times; < 0: no copy there. Rows are
  /// used again when the last user has run.
  std::vector<int64_t> rows;
  std::vector<int32_t> unusedRows;
  std::vector<int32_t> copied;
  std::vector<Unit> lazyUnits;
};

} // namespace baechi::placement::placers

#endif // BAECHI_LIB_PLACEMENT_PARTIALSCHEDULE_H

//===- Model.h - The problem in flat arrays ---------------------*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// What every algorithm works on: operators ("nodes"), tensors, devices and
/// colocation units as dense ids, edges in compressed rows. A model is either
/// the problem itself or a coarser one whose nodes stand for several operators
/// (Coarsen.h).
///
//===----------------------------------------------------------------------===//
#ifndef BAECHI_LIB_PLACEMENT_MODEL_H
#define BAECHI_LIB_PLACEMENT_MODEL_H

#include "Baechi/Placement/Model/Placement.h"

#include <span>

namespace baechi::placement {

/// Rows of ids, concatenated.
struct Rows {
  std::vector<int32_t> begin{0};
  std::vector<int32_t> items;

  std::span<const int32_t> operator[](int32_t row) const {
    return {items.data() + begin[row], items.data() + begin[row + 1]};
  }
  int32_t size() const { return static_cast<int32_t>(begin.size()) - 1; }
};

/// Rows from (row, item) pairs: sorted, without duplicates.
Rows makeRows(int32_t numRows,
              const std::vector<std::pair<int32_t, int32_t>> &pairs);

/// The rows that contain an item, for every item below \p numItems.
Rows inverse(const Rows &rows, int32_t numItems);

/// A colocation unit: nodes that are on one device.
using Unit = int32_t;

struct Model {
  /// \p problem must have passed `check` and must outlive the model.
  explicit Model(const Problem &problem);
  Model() = default;

  const Machine *machine = nullptr;
  int32_t numNodes = 0;
  int32_t numDevices = 0;
  int32_t numTensors = 0;
  int32_t numUnits = 0;

  // Nodes.
  std::vector<int64_t> kindTime;     ///< [node * numKinds + kind]; < 0: cannot
  std::vector<int64_t> scratch;      ///< bytes while it runs
  std::vector<int64_t> resident;     ///< bytes always
  std::vector<uint8_t> keepsOutputs; ///< outputs live to the end of the step
  std::vector<Unit> unit;
  std::vector<int32_t> firstTensor; ///< tensors of a node are consecutive
  Rows operands;                    ///< node -> tensors it reads
  Rows controlUsers;                ///< node -> nodes that wait for it
  Rows controlSources;              ///< the inverse
  std::vector<int32_t> order;       ///< topological, depth first

  // Tensors.
  std::vector<int32_t> producer;
  std::vector<int64_t> memory;
  std::vector<int64_t> copy;
  std::vector<int64_t> bytes;
  Rows users; ///< tensor -> nodes that read it

  // Units.
  Rows members;                      ///< unit -> nodes
  std::vector<uint8_t> allowed;      ///< [unit * numDevices + d]
  std::vector<int64_t> unitResident; ///< bytes of all members

  // Devices of one kind take the same time.
  std::vector<int32_t> kindOf; ///< per device
  int32_t numKinds = 0;

  // Links: pairs of equal latency and bandwidth share a class.
  std::vector<int32_t> linkClass; ///< [from * numDevices + to]; < 0: none
  std::vector<Link> classes;
  int32_t numClasses = 0;
  /// [home * numDevices + to]: the device that passes a tensor on to `to` on
  /// its way from `home`. Home itself where there is a link; over as few
  /// devices as can be where there is none, the quickest of these ways; < 0
  /// where no way leads.
  std::vector<int32_t> hops;
  /// True: some pair has no link, tensors may have to be passed on.
  bool lacksLinks = false;

  int64_t timeOf(int32_t node, int32_t device) const {
    return kindTime[static_cast<size_t>(node) * numKinds + kindOf[device]];
  }
  bool mayUse(Unit u, int32_t device) const {
    return allowed[static_cast<size_t>(u) * numDevices + device] != 0;
  }
  bool linked(int32_t from, int32_t to) const {
    return linkClass[from * numDevices + to] >= 0;
  }
  int32_t hopBefore(int32_t home, int32_t to) const {
    return hops[home * numDevices + to];
  }
  /// Whether a tensor can come from one device to the other. A control signal
  /// is not passed on: it needs a link.
  bool reaches(int32_t home, int32_t to) const {
    return hopBefore(home, to) >= 0;
  }
  /// Where a copy comes from; home also where no way leads, for what does not
  /// look at links.
  int32_t sourceOf(int32_t home, int32_t to) const {
    int32_t from = hopBefore(home, to);
    return from < 0 ? home : from;
  }
  /// Of the transfers that bring a tensor from one device to the other, which
  /// it must reach, one after the other.
  int64_t routeNs(int32_t tensor, int32_t home, int32_t to) const {
    int64_t ns = 0;
    for (int32_t from; to != home; to = from) {
      from = hopBefore(home, to);
      ns += transferNs(tensor, from, to);
    }
    return ns;
  }
  /// On the way from \p home to \p to, the device after \p at; < 0 when the
  /// way does not lead over it.
  int32_t hopAfter(int32_t at, int32_t home, int32_t to) const {
    for (int32_t from; to != home; to = from) {
      from = hopBefore(home, to);
      if (from == at)
        return to;
    }
    return -1;
  }
  /// Adds to the devices that a tensor of \p home goes to those that pass it
  /// on. O(devices squared).
  void addRelays(int32_t home, std::vector<int32_t> &targets) const;
  int64_t transferNs(int32_t tensor, int32_t from, int32_t to) const {
    return classTransfer(tensor, linkClass[from * numDevices + to]);
  }
  int64_t classTransfer(int32_t tensor, int32_t linkClass) const {
    return transferTable.empty()
               ? classes[linkClass].transferNs(bytes[tensor])
               : transferTable[static_cast<size_t>(tensor) * numClasses +
                               linkClass];
  }
  int64_t latencyNs(int32_t from, int32_t to) const {
    return classes[linkClass[from * numDevices + to]].latencyNs;
  }
  std::pair<int32_t, int32_t> tensorsOf(int32_t node) const {
    return {firstTensor[node], firstTensor[node + 1]};
  }
  int64_t deviceMemory(int32_t d) const { return machine->devices[d].memory; }
  bool pinned(Unit u) const;
  /// Whether not all bytes that there are fit each device at once: else every
  /// schedule of every assignment fits.
  bool memoryMatters() const;

  /// The shortest time of a node on any device it may use.
  int64_t minTime(int32_t node) const { return shortestTime[node]; }
  /// The mean over the devices it may use.
  int64_t meanTime(int32_t node) const { return averageTime[node]; }
  /// The mean transfer over the classes of links; 0 when there is none.
  int64_t meanTransfer(int32_t tensor) const { return averageTransfer[tensor]; }

  /// Calls \p visit for every successor, by data and by control; one that is
  /// both, or reads several tensors, comes more than once.
  template <typename Visit> void forEachUser(int32_t node, Visit visit) const {
    for (int32_t t = firstTensor[node]; t < firstTensor[node + 1]; ++t)
      for (int32_t user : users[t])
        visit(user);
    for (int32_t user : controlUsers[node])
      visit(user);
  }
  template <typename Visit>
  void forEachSource(int32_t node, Visit visit) const {
    for (int32_t t : operands[node])
      visit(producer[t]);
    for (int32_t source : controlSources[node])
      visit(source);
  }

  /// Fills `order`, `members`, `unitResident` and everything about links and
  /// means once the rest is there.
  void finish();

private:
  void finishUnits();
  void finishOrder();
  void finishTimes();
  void finishLinks();
  void finishRoutes();

  std::vector<int64_t> shortestTime, averageTime; ///< per node
  std::vector<int64_t> averageTransfer;           ///< per tensor
  /// [tensor * numClasses + class]; empty when there are many classes.
  std::vector<int64_t> transferTable;
};

/// A device for every node; the same for all nodes of a unit.
using Assignment = std::vector<int32_t>;

} // namespace baechi::placement

#endif // BAECHI_LIB_PLACEMENT_MODEL_H

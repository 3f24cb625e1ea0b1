//===- Steps.h - Runs and transfers of an assignment ------------*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Once every node has a device, a step of the program consists of runs of
/// nodes and of transfers of tensors. Both allocate memory on one device and
/// release it in several places. When steps are taken one by one in some order,
/// the level of every device after each of them is plain to see. Orders matter
/// because an assignment fits the memories in some schedule if and only if it
/// fits them in some order: take the steps of the schedule by their ends.
///
//===----------------------------------------------------------------------===//
#ifndef BAECHI_LIB_PLACEMENT_MEMORY_STEPS_H
#define BAECHI_LIB_PLACEMENT_MEMORY_STEPS_H

#include "Schedule/Schedule.h"

namespace baechi::placement::memory {

/// A run of a node (the node's id) or a transfer (numNodes + its number).
using Step = int32_t;
using StepOrder = std::vector<Step>;

class Steps {
public:
  Steps(const Model &model, const Assignment &device);

  const Model &model;
  const Assignment &device;

  struct Transfer {
    int32_t tensor;
    int32_t from; ///< home, or a device that passes it on
    int32_t to;
  };
  std::vector<Transfer> transfers;    ///< by tensor
  std::vector<int32_t> firstTransfer; ///< tensor -> its first transfer

  int32_t size() const {
    return model.numNodes + static_cast<int32_t>(transfers.size());
  }
  bool isRun(Step s) const { return s < model.numNodes; }
  const Transfer &transfer(Step s) const {
    return transfers[s - model.numNodes];
  }
  /// The device that a step allocates memory on.
  int32_t deviceOf(Step s) const {
    return isRun(s) ? device[s] : transfer(s).to;
  }
  int32_t homeOf(int32_t tensor) const {
    return device[model.producer[tensor]];
  }
  /// The step that brings a tensor to a device that is not its home.
  Step transferTo(int32_t tensor, int32_t to) const;
  /// A run that takes no time holds its results only from its end on.
  bool isInstant(Step s) const {
    return isRun(s) && model.timeOf(s, device[s]) == 0;
  }

  // What is held: a tensor at home (the tensor's id), or a copy of it
  // (numTensors + the transfer's number).
  int32_t numHoldings() const {
    return model.numTensors + static_cast<int32_t>(transfers.size());
  }
  bool isCopy(int32_t holding) const { return holding >= model.numTensors; }
  const Transfer &copyOf(int32_t holding) const {
    return transfers[holding - model.numTensors];
  }
  int32_t tensorOf(int32_t holding) const {
    return isCopy(holding) ? copyOf(holding).tensor : holding;
  }
  int32_t whereHeld(int32_t holding) const {
    return isCopy(holding) ? copyOf(holding).to : homeOf(holding);
  }
  int64_t bytesOf(int32_t holding) const {
    return isCopy(holding) ? model.copy[copyOf(holding).tensor]
                           : model.memory[holding];
  }
  /// Held to the end of the step whoever uses it.
  bool isKept(int32_t holding) const {
    return !isCopy(holding) && model.keepsOutputs[model.producer[holding]];
  }
  int32_t holdingAt(int32_t tensor, int32_t d) const {
    return homeOf(tensor) == d ? tensor : copyBy(transferTo(tensor, d));
  }
  /// The copy that a transfer makes.
  int32_t copyBy(Step transfer) const {
    return transfer - model.numNodes + model.numTensors;
  }

  /// What a step allocates.
  template <typename Visit> void forEachBorn(Step s, Visit visit) const {
    if (!isRun(s))
      return visit(copyBy(s));
    for (int32_t t = model.firstTensor[s]; t < model.firstTensor[s + 1]; ++t)
      visit(t);
  }
  /// What a step needs, once each.
  template <typename Visit> void forEachRead(Step s, Visit visit) const {
    if (!isRun(s))
      return visit(holdingAt(transfer(s).tensor, transfer(s).from));
    for (int32_t t : model.operands[s])
      visit(holdingAt(t, device[s]));
  }
  /// The steps that need a holding.
  template <typename Visit>
  void forEachUse(int32_t holding, Visit visit) const {
    int32_t tensor = tensorOf(holding), where = whereHeld(holding);
    for (int32_t user : model.users[tensor])
      if (device[user] == where)
        visit(user);
    if (!isCopy(holding) || model.lacksLinks)
      for (int32_t k = firstTransfer[tensor]; k < firstTransfer[tensor + 1];
           ++k)
        if (transfers[k].from == where)
          visit(model.numNodes + k);
  }
  /// The steps that must wait for a step; some more than once.
  template <typename Visit> void forEachNext(Step s, Visit visit) const {
    forEachBorn(s, [&](int32_t holding) { forEachUse(holding, visit); });
    if (isRun(s))
      for (int32_t user : model.controlUsers[s])
        visit(user);
  }
  /// The steps that a step must wait for; some more than once.
  template <typename Visit> void forEachPrevious(Step s, Visit visit) const {
    if (!isRun(s)) {
      auto [tensor, from, to] = transfer(s);
      return visit(from == homeOf(tensor) ? model.producer[tensor]
                                          : transferTo(tensor, from));
    }
    for (int32_t t : model.operands[s])
      visit(homeOf(t) == device[s] ? model.producer[t]
                                   : transferTo(t, device[s]));
    for (int32_t source : model.controlSources[s])
      visit(source);
  }

  /// Resident bytes of every device.
  std::vector<int64_t> resident() const;
};

/// The levels of all devices while steps are taken.
class Levels {
public:
  explicit Levels(const Steps &steps);
  /// What its device must have free for \p s to begin.
  int64_t need(Step s) const;
  /// What a step leaves on its device, less what it releases there. What a
  /// transfer releases where it comes from does not count.
  int64_t growth(Step s) const;
  /// What a step releases where its operands are, its scratch aside.
  int64_t released(Step s) const;
  void begin(Step s);
  void end(Step s);

  std::vector<int64_t> level; ///< bytes on every device

private:
  int64_t born(Step s) const;

  const Steps &steps;
  std::vector<int32_t> usesLeft; ///< per holding
};

/// Peak bytes of every device when the steps are taken in \p order.
std::vector<int64_t> orderPeaks(const Steps &steps,
                                std::span<const Step> order);

/// Bytes that every device holds at some time in any order: resident bytes, and
/// either what a run needs and makes or the results that are kept.
std::vector<int64_t> leastPossiblePeaks(const Steps &steps);

/// \p nodes, in topological order, with every transfer right before the first
/// node that needs it.
StepOrder lateTransfers(const Steps &steps, std::span<const int32_t> nodes);

/// The steps of a schedule by their ends: an order that fits where the schedule
/// does.
StepOrder orderOf(const Steps &steps, const Schedule &schedule);

} // namespace baechi::placement::memory

#endif // BAECHI_LIB_PLACEMENT_MEMORY_STEPS_H

//===- Schedule.h - A schedule for an assignment ----------------*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Given a device for every node, when does everything run? An event-driven
/// list schedule: operators and transfers start in time order, the most urgent
/// first, as soon as what they wait for is there and their device or link is
/// free. Memory is not looked at; LimitedSchedule.h does that where it must.
///
//===----------------------------------------------------------------------===//
#ifndef BAECHI_LIB_PLACEMENT_SCHEDULE_H
#define BAECHI_LIB_PLACEMENT_SCHEDULE_H

#include "Model/Model.h"
#include "Schedule/BusyLinks.h"

#include <limits>
#include <tuple>

namespace baechi::placement {

constexpr int64_t never = std::numeric_limits<int64_t>::max();

struct ScheduledTransfer {
  int32_t tensor;
  int32_t from; ///< home, or a device that passes it on
  int32_t to;
  int64_t start;
  int64_t end;
};

struct Schedule {
  int64_t makespan = never;
  std::vector<int64_t> start; ///< per node
  std::vector<ScheduledTransfer> transfers;
};

class Scheduler {
public:
  explicit Scheduler(const Model &model);

  struct Options {
    /// Larger is more urgent, one a node; none: the longest path to the end,
    /// with the transfers that the assignment asks for.
    std::span<const int64_t> priority;
    /// Gives up once the makespan must be larger.
    int64_t cutoff = never;
  };

  /// Returns the makespan; `never` beyond the cut-off or when two devices that
  /// must talk cannot. Where there is no link a tensor comes over other devices
  /// (`Model::hops`).
  int64_t run(const Assignment &device, const Options &options,
              Schedule *record = nullptr);
  int64_t run(const Assignment &device) { return run(device, Options()); }

  /// The longest paths to the end, transfers included, of the last run.
  const std::vector<int64_t> &tails() const { return tail; }

private:
  struct Ready {
    int64_t priority;
    int32_t id;
    bool operator<(const Ready &other) const {
      return priority != other.priority ? priority < other.priority
                                        : id > other.id;
    }
  };
  enum class Kind : int32_t { NodeEnds, TransferEnds, SignalArrives };
  struct Event {
    int64_t at;
    Kind kind;
    int32_t id; ///< a node, or a slot of `running`
    /// For a heap whose top is the earliest.
    bool operator<(const Event &other) const {
      return std::tie(at, kind, id) > std::tie(other.at, other.kind, other.id);
    }
  };
  struct Running {
    int32_t tensor, from, to;
  };
  /// What is asked of a node together: in large models each question is a line
  /// of memory that no cache holds.
  struct State {
    int64_t priority;
    int32_t on;      ///< its device
    int32_t waiting; ///< sources that are not there yet
  };

  bool computeTails(const Assignment &device);
  void reset(const Assignment &device, const Options &options);
  void arrive(int32_t node);
  void fetchUsers(int32_t node) const;
  void push(Event event);
  void want(int32_t to, int64_t priority);
  void requestCopies(int32_t tensor, int32_t from);
  void passOn(int32_t tensor, int32_t at);
  void finishNode(int32_t node);
  void finishTransfer(int32_t slot);
  void startTransfers();
  void startNode(int32_t d);

  const Model &model;
  int32_t numDevices;
  std::vector<int32_t> needs; ///< operands and control sources of each node

  // One run's state.
  Schedule *record = nullptr;
  int64_t now = 0;
  int64_t cutoff = never;
  int32_t left = 0;
  std::vector<int64_t> tail;
  std::vector<State> states;                      ///< per node
  std::vector<std::vector<Ready>> readyNodes;     ///< per device
  std::vector<uint8_t> nodeRunning;               ///< per device
  std::vector<int64_t> workLeft;                  ///< per device
  std::vector<std::vector<Ready>> readyTransfers; ///< [from * D + to]
  std::vector<int32_t> pendingPairs;              ///< pairs with such
  std::vector<Running> running;
  std::vector<int32_t> freeSlots;
  std::vector<Event> events;
  BusyLinks links;
  bool transfersChanged = false;
  bool beyond = false;          ///< the cut-off was passed
  std::vector<int64_t> wanted;  ///< per device: who wants the tensor most
  std::vector<int32_t> wanting; ///< the devices that do
};

/// Peak bytes of every device in a recorded schedule.
std::vector<int64_t> schedulePeaks(const Model &model, const Assignment &device,
                                   const Schedule &schedule);

/// The largest load of a device or of what the link model makes exclusive, in
/// nanoseconds, with tensors on the ways that the scheduler sends them; where
/// the machine stages transfers, of a device's computing, sending and fetching
/// together. `never` when two devices that must talk cannot.
int64_t maxLoad(const Model &model, const Assignment &device);
/// The same with tensors on the ways that \p placement, of the problem's own
/// model, has: it may relay what a link could carry.
int64_t maxLoad(const Model &model, const Placement &placement);

/// The placement that a schedule of the problem's own model stands for.
Placement toPlacement(const Model &model, const Assignment &device,
                      const Schedule &schedule);

} // namespace baechi::placement

#endif // BAECHI_LIB_PLACEMENT_SCHEDULE_H

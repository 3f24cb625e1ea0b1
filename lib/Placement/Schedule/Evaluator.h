//===- Evaluator.h - Many schedules of one model ----------------*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// What the search asks thousands of times: how long is a step when the units
/// are on these devices? The same schedule as `Scheduler` (Schedule.h) gives
/// without memory limits, from arrays in topological order, and given up as
/// soon as it must be longer than the best known.
///
//===----------------------------------------------------------------------===//
#ifndef BAECHI_LIB_PLACEMENT_SEARCH_EVALUATOR_H
#define BAECHI_LIB_PLACEMENT_SEARCH_EVALUATOR_H

#include "Schedule/RankSet.h"
#include "Schedule/Schedule.h"

#include <array>

namespace baechi::placement {

class Evaluator {
public:
  explicit Evaluator(const Model &model);

  /// The makespan, in ns, with \p device for every unit; `never` when it is
  /// above \p cutoff or two devices must talk that cannot. A unit's urgency is
  /// the longest path to the end plus \p offset, in ns (empty: zeros).
  int64_t run(std::span<const int32_t> device, std::span<const int64_t> offset,
              int64_t cutoff, Schedule *record = nullptr);

private:
  static constexpr int radixBits = 11, radix = 1 << radixBits;

  /// A tensor that waits for a link: urgency above, the complement of its id
  /// below, so that the largest is the most urgent, the smallest id among
  /// equals.
  using Key = uint64_t;
  struct Event {
    int64_t at;
    int32_t id; ///< a slot of `flights`, or ~node: a signal arrives
    bool operator<(const Event &other) const {
      return std::tie(at, id) > std::tie(other.at, other.id);
    }
  };
  struct Flight {
    int32_t tensor, from, to;
  };
  /// What is asked together of a node that something arrives for: in large
  /// models each question is a line of memory that no cache holds.
  struct alignas(16) State {
    int32_t on;      ///< its device
    int32_t waiting; ///< sources that are not there yet
    int32_t rank;    ///< by urgency, the most urgent first
  };

  Key keyOf(int64_t urgency, int32_t id) const {
    auto high = static_cast<uint64_t>(std::max<int64_t>(urgency, 0)) >> shift;
    return high << idBits | (idMask - static_cast<uint64_t>(id));
  }
  int32_t idOf(Key key) const {
    return static_cast<int32_t>(idMask - (key & idMask));
  }
  int64_t transferNs(int32_t tensor, int32_t from, int32_t to) const {
    return transfer[static_cast<size_t>(tensor) * classes +
                    model.linkClass[from * devices + to]];
  }
  int64_t timeOf(int32_t node, int32_t device) const {
    return time[static_cast<size_t>(node) * model.numKinds +
                model.kindOf[device]];
  }
  bool prepare(std::span<const int32_t> device, std::span<const int64_t> offset,
               int64_t cutoff);
  void rank();
  template <LinkModel linkModel> int64_t simulate(int64_t cutoff);
  template <LinkModel linkModel> bool startTransfers(int64_t cutoff);
  void finishNode(int32_t d);
  template <LinkModel linkModel> void finishFlight(int32_t slot);
  void arrive(int32_t node);
  void fetch(int32_t node) const;
  void fetchUsers(int32_t node) const;
  int64_t wayNs(int32_t tensor, int32_t from, int32_t to) const;
  void want(int32_t to, int64_t rank);
  void request(int32_t tensor, int32_t from);
  void passOn(int32_t tensor, int32_t at);

  // The model, nodes by their position in topological order, the tensors of a
  // node together.
  const Model &model;
  int32_t nodes, devices, classes;
  bool isLarge; ///< caches do not hold it
  int idBits, shift;
  uint64_t idMask;
  std::vector<int32_t> unit;
  std::vector<int64_t> time;     ///< [node * kinds + kind]
  std::vector<int32_t> needs;    ///< operands and control sources
  std::vector<int32_t> tensorOf; ///< node -> first tensor
  std::vector<int32_t> userOf;   ///< tensor -> first user
  std::vector<int32_t> users;
  std::vector<int32_t> producer;
  std::vector<int64_t> transfer;  ///< [tensor * classes + class]
  std::vector<int32_t> controlOf; ///< node -> first control user
  std::vector<int32_t> controls;
  std::vector<int32_t> modelNode, modelTensor; ///< the model's ids
  std::vector<int32_t> tensorAt;               ///< the model's tensor -> ours

  // One run.
  std::vector<State> states;    ///< per node
  std::vector<int64_t> tail;    ///< longest path to the end
  std::vector<int64_t> shifted; ///< tails plus offsets
  const int64_t *urgency = nullptr;
  std::vector<int32_t> byRank; ///< nodes, the most urgent first
  std::vector<int32_t> byModelNode, scratch;
  std::vector<std::array<int32_t, radix>> counts;
  std::vector<int64_t> workLeft;
  std::vector<RankSet> ready;           ///< per device, ranks of nodes
  std::vector<int64_t> nodeEnds;        ///< per device; `never`: idle
  std::vector<int32_t> nodeOn;          ///< per device
  std::vector<std::vector<Key>> queued; ///< heaps, [from * devices + to]
  std::vector<int32_t> pairs;           ///< those that are not empty
  std::vector<Flight> flights;
  std::vector<int32_t> freeSlots;
  std::vector<Event> events;
  BusyLinks links;
  std::vector<int64_t> wanted;
  std::vector<int32_t> wanting;
  int64_t now = 0;
  bool requested = false;
  Schedule *record = nullptr;
};

} // namespace baechi::placement

#endif // BAECHI_LIB_PLACEMENT_SEARCH_EVALUATOR_H

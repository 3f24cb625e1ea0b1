//===- SmallRecompute.cpp - The best order of a small graph ---------------===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Recompute/Replay.h"

#include <algorithm>
#include <queue>
#include <unordered_map>

using namespace baechi::placement;
using namespace baechi::placement::recompute;

namespace {

using Set = uint32_t;
constexpr int32_t mostMembers = 24;
constexpr size_t mostStates = 300'000;

Set bit(int32_t member) { return Set(1) << member; }

/// The shortest way (Dijkstra 1959) over what has run and what is there; first
/// runs take no time. A tensor is let go only where a run needs its room, as
/// later is never worse.
class SmallSearch {
public:
  SmallSearch(const RepeatGraph &graph, int64_t limit, int64_t mostAgainNs)
      : graph(graph), limit(limit), mostAgainNs(mostAgainNs),
        reads(graph.numOps(), 0), makes(graph.numOps(), 0),
        waitsFor(graph.numOps(), 0), blockedBy(graph.numOps(), 0) {
    for (int32_t op = 0; op < graph.numOps(); ++op) {
      for (int32_t tensor : graph.operands[op])
        reads[op] |= bit(tensor);
      for (int32_t tensor = graph.firstTensor[op];
           tensor < graph.firstTensor[op + 1]; ++tensor)
        makes[op] |= bit(tensor);
      for (int32_t user : graph.controlUsers[op]) {
        waitsFor[user] |= bit(op);
        blockedBy[op] |= bit(user);
      }
    }
    for (int32_t tensor = 0; tensor < graph.numTensors(); ++tensor)
      if (graph.bytes[tensor] == 0)
        stays |= bit(tensor);
      else if (graph.kept[tensor])
        kept |= bit(tensor);
  }

  std::optional<RepeatedOrder> run() {
    Set all = bit(graph.numOps()) - 1;
    reach({0, 0, 0, -1, -1});
    while (!queue.empty()) {
      int32_t number = queue.top().second;
      queue.pop();
      State state = states[number];
      if (known[keyOf(state)] != number)
        continue;
      if (state.done == all && !(kept & ~state.live))
        return orderOf(number);
      if (states.size() > mostStates)
        return std::nullopt;
      for (int32_t op = 0; op < graph.numOps(); ++op)
        if (mayRun(state, op))
          makeRoom(state, number, op, state.live,
                   state.live & ~stays & ~reads[op]);
    }
    return std::nullopt;
  }

private:
  struct State {
    Set done, live;
    int64_t againNs;
    int32_t before; ///< number of the state before
    int32_t op;     ///< that ran
  };

  static uint64_t keyOf(const State &state) {
    return uint64_t(state.done) << 32 | state.live;
  }
  int64_t bytesOf(Set live) const {
    int64_t bytes = graph.resident;
    for (int32_t tensor = 0; tensor < graph.numTensors(); ++tensor)
      if (live & bit(tensor))
        bytes += graph.bytes[tensor];
    return bytes;
  }
  bool mayRun(const State &state, int32_t op) const {
    bool ran = state.done & bit(op);
    if ((reads[op] & ~state.live) || (waitsFor[op] & ~state.done))
      return false;
    return !ran || (graph.canRepeat(op) && !(blockedBy[op] & state.done) &&
                    (makes[op] & ~state.live));
  }

  /// Lets go of as few tensors as can be, in every way, until \p op has room.
  /// \p may: those that have not been passed over.
  void makeRoom(const State &state, int32_t number, int32_t op, Set live,
                Set may) {
    if (bytesOf(live) + graph.needs[op] <= limit) {
      int64_t ns = state.done & bit(op) ? graph.timeNs[op] : 0;
      reach({state.done | bit(op), live | makes[op], state.againNs + ns, number,
             op});
      return;
    }
    while (may) {
      Set tensor = may & (~may + 1);
      may &= ~tensor;
      makeRoom(state, number, op, live & ~tensor, may);
    }
  }

  void reach(const State &state) {
    if (state.againNs >= mostAgainNs)
      return;
    auto number = static_cast<int32_t>(states.size());
    auto [entry, isNew] = known.try_emplace(keyOf(state), number);
    if (!isNew && states[entry->second].againNs <= state.againNs)
      return;
    entry->second = number;
    states.push_back(state);
    // Of equal times, the one that has come further.
    queue.emplace(-state.againNs, number);
  }

  RepeatedOrder orderOf(int32_t number) const {
    RepeatedOrder order;
    order.againNs = states[number].againNs;
    for (; states[number].before >= 0; number = states[number].before)
      order.runs.push_back(states[number].op);
    std::reverse(order.runs.begin(), order.runs.end());
    return order;
  }

  const RepeatGraph &graph;
  int64_t limit, mostAgainNs;
  std::vector<Set> reads, makes;        ///< per operator: tensors
  std::vector<Set> waitsFor, blockedBy; ///< per operator: operators
  Set stays = 0, kept = 0;              ///< tensors
  std::vector<State> states;
  std::unordered_map<uint64_t, int32_t> known;
  std::priority_queue<std::pair<int64_t, int32_t>> queue;
};

} // namespace

std::optional<RepeatedOrder>
baechi::placement::recompute::bestOfSmall(const RepeatGraph &graph,
                                          int64_t limit, int64_t mostAgainNs) {
  if (graph.numOps() > mostMembers || graph.numTensors() > mostMembers)
    return std::nullopt;
  return SmallSearch(graph, limit, mostAgainNs).run();
}

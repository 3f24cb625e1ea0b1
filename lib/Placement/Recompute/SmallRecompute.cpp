//===- SmallRecompute.cpp - The best order of a small graph ---------------===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Recompute/Replay.h"

#include <algorithm>
#include <bit>
#include <queue>
#include <unordered_map>

using namespace baechi::placement;
using namespace baechi::placement::recompute;

namespace {

using Set = uint32_t;
constexpr size_t mostStates = 300'000;

Set bit(int32_t member) { return Set(1) << member; }

/// The shortest way (Hart, Nilsson, Raphael, 1968) over what has run and what
/// is there; first runs take no time, and what is left takes at least what must
/// run again. A tensor is let go where nobody may read it any more, and else
/// only where a run needs its room, as later is never worse.
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
      if (graph.canRepeat(op))
        repeats |= bit(op);
    }
    for (int32_t tensor = 0; tensor < graph.numTensors(); ++tensor)
      if (graph.bytes[tensor] == 0)
        stays |= bit(tensor);
      else if (graph.kept[tensor])
        kept |= bit(tensor);
  }

  std::optional<RepeatedOrder> run() {
    all = bit(graph.numOps()) - 1;
    lastWanted = wanted(lastDone);
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
  static int32_t firstOf(Set set) { return std::countr_zero(set); }
  int64_t bytesOf(Set live) const {
    int64_t bytes = graph.resident;
    for (; live; live &= live - 1)
      bytes += graph.bytes[firstOf(live)];
    return bytes;
  }
  /// What operators read that have not run.
  Set needed(Set done) const {
    Set found = kept;
    for (Set left = all & ~done; left; left &= left - 1)
      found |= reads[firstOf(left)];
    return found;
  }
  bool mayRunAgain(Set done, int32_t op) const {
    return (repeats & bit(op)) && !(blockedBy[op] & done);
  }
  /// The same, and what may have to run again for these reads.
  Set wanted(Set done) const {
    Set found = needed(done);
    for (Set open = found; open;) {
      int32_t op = graph.producer[firstOf(open)];
      open &= open - 1;
      if ((done & bit(op)) && !mayRunAgain(done, op))
        continue;
      open |= reads[op] & ~found;
      found |= reads[op];
    }
    return found;
  }
  /// The time of what must run again; nullopt where that may not.
  std::optional<int64_t> leftNs(const State &state) const {
    int64_t ns = 0;
    Set again = 0;
    for (Set open = needed(state.done) & ~state.live; open;) {
      int32_t op = graph.producer[firstOf(open)];
      open &= open - 1;
      if (!(state.done & bit(op)) || (again & bit(op)))
        continue;
      if (!mayRunAgain(state.done, op))
        return std::nullopt;
      again |= bit(op);
      ns += graph.timeNs[op];
      open |= reads[op] & ~state.live;
    }
    return ns;
  }
  bool mayRun(const State &state, int32_t op) const {
    bool ran = state.done & bit(op);
    if ((reads[op] & ~state.live) || (waitsFor[op] & ~state.done))
      return false;
    return !ran || (mayRunAgain(state.done, op) &&
                    (makes[op] & ~state.live & wanted(state.done)));
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

  void reach(State state) {
    if (state.done != lastDone) {
      lastDone = state.done;
      lastWanted = wanted(state.done);
    }
    state.live &= stays | lastWanted;
    auto entry = known.find(keyOf(state));
    if (entry != known.end() && states[entry->second].againNs <= state.againNs)
      return;
    std::optional<int64_t> left = leftNs(state);
    if (!left || state.againNs + *left >= mostAgainNs)
      return;
    auto number = static_cast<int32_t>(states.size());
    known[keyOf(state)] = number;
    states.push_back(state);
    // Of equal times, the one that has come further.
    queue.emplace(-(state.againNs + *left), number);
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
  Set all = 0, repeats = 0;             ///< operators
  Set stays = 0, kept = 0;              ///< tensors
  Set lastDone = 0, lastWanted = 0;     ///< of reach()
  std::vector<State> states;
  std::unordered_map<uint64_t, int32_t> known;
  std::priority_queue<std::pair<int64_t, int32_t>> queue;
};

} // namespace

bool baechi::placement::areAllSearched(const Graph &graph) {
  size_t tensors = 0;
  for (const Operator &op : graph.ops)
    tensors += op.outputs.size();
  return std::max(graph.ops.size(), tensors) <= size_t(mostMembers);
}

std::optional<RepeatedOrder>
baechi::placement::recompute::bestOfSmall(const RepeatGraph &graph,
                                          int64_t limit, int64_t mostAgainNs) {
  if (graph.numOps() > mostMembers || graph.numTensors() > mostMembers)
    return std::nullopt;
  return SmallSearch(graph, limit, mostAgainNs).run();
}

//===- FitOptimum.h - The shortest step within a memory ---------*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// The shortest step of a small graph on one device with a pool, by search over
/// all orders, clones and stays in the pool, with rules of its own. They know
/// nothing of plans: at any time the device runs one operator and the link
/// moves one tensor, each of them may wait, and what is on the device has to
/// have room. The shortest way (Hart, Nilsson, Raphael, 1968) over what has
/// run, is on the device, is in the pool and is under way.
///
//===----------------------------------------------------------------------===//
#ifndef BAECHI_UNITTESTS_PLACEMENT_FITOPTIMUM_H
#define BAECHI_UNITTESTS_PLACEMENT_FITOPTIMUM_H

#include "Baechi/Placement/Model/Problem.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <limits>
#include <queue>
#include <unordered_map>
#include <vector>

namespace baechi::placement::test {

class FitOptimum {
public:
  enum class Answer : uint8_t { Found, NotBelow, Undecided };

  /// Operators have one result each. \p mayRepeat: as RecomputeOptions.
  /// \p mayMove: the pool may be used.
  FitOptimum(const Graph &graph, const std::vector<uint8_t> &mayRepeat,
             const Link &link, int64_t limit, bool mayMove)
      : count(static_cast<int32_t>(graph.ops.size())), mayMove(mayMove),
        ns(count), moveNs(count), bytes(count), scratch(count), reads(count),
        waits(count), blocks(count), repeats(mayRepeat), room(limit) {
    for (int32_t op = 0; op < count; ++op) {
      const Operator &from = graph.ops[op];
      ns[op] = from.timeNs.front().second;
      bytes[op] = from.outputs.front().memory;
      moveNs[op] = link.copyNs(from.outputs.front().bytes);
      scratch[op] = from.scratch;
      room -= from.resident;
      if (from.result)
        kept |= bit(op);
      if (bytes[op] == 0)
        fixed |= bit(op);
    }
    for (const Edge &edge : graph.edges)
      if (edge.output >= 0) {
        reads[edge.to] |= bit(edge.from);
      } else {
        waits[edge.to] |= bit(edge.from);
        blocks[edge.from] |= bit(edge.to);
      }
  }

  /// Looks for a step below \p most ns and gives up after \p mostStates.
  Answer run(int64_t most, size_t mostStates) {
    best = most;
    reach({});
    while (!queue.empty()) {
      State state = states[queue.top().number];
      queue.pop();
      if (state.isWorse)
        continue;
      if (isEnd(state)) {
        best = state.now;
        return Answer::Found;
      }
      if (states.size() > mostStates)
        return Answer::Undecided;
      expand(state);
    }
    return Answer::NotBelow;
  }

  int64_t bestNs() const { return best; }
  size_t numStates() const { return states.size(); }

private:
  using Set = uint32_t;
  static Set bit(int32_t op) { return Set(1) << op; }
  static constexpr int8_t none = -1;

  struct State {
    Set done = 0, here = 0, pool = 0;
    int64_t now = 0, opEnd = 0, moveEnd = 0;
    int8_t op = none, moving = none; ///< under way
    bool isOut = false;
    /// What has changed at `now`: what could begin before need not wait.
    bool deviceIsNew = true, linkIsNew = true;
    Set arrived = 0, left = 0;
    /// A tensor reaches a device once: the pool copies what has been fetched
    /// before it can be fetched again.
    Set fetched = 0;
    std::array<int64_t, 20> copied{}; ///< when, per tensor
    bool isWorse = false;             ///< than another one
  };
  /// All is there that is in the other one, as early, and may begin.
  static bool isAsGood(const State &a, const State &b) {
    return (b.here & ~a.here) == 0 && (b.pool & ~a.pool) == 0 &&
           a.now <= b.now && a.opEnd <= b.opEnd && a.moveEnd <= b.moveEnd &&
           a.deviceIsNew >= b.deviceIsNew && a.linkIsNew >= b.linkIsNew &&
           (b.arrived & ~a.arrived) == 0 && (b.left & ~a.left) == 0 &&
           isCopiedAsSoon(a, b);
  }
  static bool isCopiedAsSoon(const State &a, const State &b) {
    for (Set each = a.fetched; each; each &= each - 1)
      if (int32_t tensor = __builtin_ctz(each);
          a.copied[tensor] > b.now &&
          (!(b.fetched & bit(tensor)) || a.copied[tensor] > b.copied[tensor]))
        return false;
    return true;
  }
  struct Entry {
    int64_t bound;
    int32_t done; ///< how many
    int32_t number;
    bool operator<(const Entry &other) const {
      return bound != other.bound ? bound > other.bound
             : done != other.done ? done < other.done
                                  : number < other.number;
    }
  };

  Set all() const { return count == 32 ? ~Set(0) : bit(count) - 1; }

  bool isEnd(const State &state) const {
    return state.done == all() && state.op == none && state.moving == none &&
           (state.here & kept) == kept;
  }
  int64_t held(Set set) const {
    int64_t sum = 0;
    for (; set; set &= set - 1)
      sum += bytes[__builtin_ctz(set)];
    return sum;
  }
  /// What somebody may still read, perhaps a clone.
  Set wanted(Set done) const {
    Set found = kept, open = 0;
    for (Set left = all() & ~done; left; left &= left - 1)
      open |= reads[__builtin_ctz(left)];
    open |= kept & done;
    found |= open;
    while (open) {
      int32_t op = __builtin_ctz(open);
      open &= open - 1;
      if (repeats[op] || !(done & bit(op))) {
        open |= reads[op] & ~found;
        found |= reads[op];
      }
    }
    return found;
  }
  /// What has not run has to, and so has what is nowhere and is read by that;
  /// what is in the pool alone and cannot run again has to come.
  int64_t boundOf(const State &state) const {
    int64_t device = std::max(state.now, state.opEnd);
    Set needed = kept;
    for (Set left = all() & ~state.done; left; left &= left - 1) {
      int32_t op = __builtin_ctz(left);
      device += ns[op];
      needed |= reads[op];
    }
    Set away = needed & state.done & ~state.here;
    Set lost = away & ~state.pool;
    for (Set open = lost; open;) {
      int32_t op = __builtin_ctz(open);
      open &= open - 1;
      if (!repeats[op])
        return std::numeric_limits<int64_t>::max();
      device += ns[op];
      Set more = reads[op] & state.done & ~(state.here | state.pool | lost);
      lost |= more;
      open |= more;
    }
    int64_t link = std::max(state.now, state.moveEnd);
    for (Set left = away & state.pool; left; left &= left - 1)
      if (int32_t tensor = __builtin_ctz(left); !repeats[tensor])
        link += moveNs[tensor];
    return std::max(device, link);
  }

  void reach(State state) {
    Set pinned = fixed | wanted(state.done);
    if (state.op != none)
      pinned |= reads[state.op] | bit(state.op);
    if (state.moving != none)
      pinned |= bit(state.moving);
    state.here &= pinned;
    int64_t bound = boundOf(state);
    if (bound >= best)
      return;
    uint64_t key = uint64_t(state.done) << 32 | (state.op + 1) << 8 |
                   (state.moving + 1) << 1 | state.isOut;
    std::vector<int32_t> &others = known[key];
    for (int32_t other : others)
      if (isAsGood(states[other], state))
        return;
    std::erase_if(others, [&](int32_t other) {
      return states[other].isWorse = isAsGood(state, states[other]);
    });
    auto number = static_cast<int32_t>(states.size());
    others.push_back(number);
    states.push_back(state);
    queue.push({bound, __builtin_popcount(state.done), number});
  }

  /// Calls \p then with every way to let go of as little as leaves \p more
  /// bytes of room.
  template <typename Function>
  void withRoom(const State &state, Set stays, int64_t more, Function then) {
    if (state.op != none) {
      stays |= reads[state.op] | bit(state.op);
      more += scratch[state.op];
    }
    if (state.moving != none)
      stays |= bit(state.moving);
    letGo(state.here, 0, state.here & ~stays & ~fixed,
          held(state.here) + more - room, then);
  }
  template <typename Function>
  void letGo(Set here, Set gone, Set may, int64_t lacking, Function then) {
    if (lacking <= 0) {
      for (Set each = gone; each; each &= each - 1)
        if (lacking + bytes[__builtin_ctz(each)] <= 0)
          return; // as well without this one
      then(here);
      return;
    }
    while (may) {
      int32_t tensor = __builtin_ctz(may);
      may &= may - 1;
      letGo(here & ~bit(tensor), gone | bit(tensor), may,
            lacking - bytes[tensor], then);
    }
  }

  void expand(const State &state) {
    if (state.op == none)
      for (int32_t op = 0; op < count; ++op)
        start(state, op);
    if (state.moving == none && mayMove)
      for (int32_t tensor = 0; tensor < count; ++tensor)
        move(state, tensor);
    State later = state;
    constexpr int64_t never = std::numeric_limits<int64_t>::max();
    later.now = std::min(state.op == none ? never : state.opEnd,
                         state.moving == none ? never : state.moveEnd);
    if (state.moving == none)
      for (Set each = state.fetched & ~state.here; each; each &= each - 1)
        if (int64_t at = state.copied[__builtin_ctz(each)]; at > state.now)
          later.now = std::min(later.now, at);
    if (later.now == never)
      return;
    if (later.now > state.now) {
      later.deviceIsNew = later.linkIsNew = false;
      later.arrived = later.left = 0;
    }
    if (state.op != none && state.opEnd <= later.now) {
      later.arrived |= bit(state.op);
      later.deviceIsNew = true;
      later.op = none;
      later.opEnd = 0;
    }
    if (state.moving != none && state.moveEnd <= later.now) {
      (state.isOut ? later.left : later.arrived) |= bit(state.moving);
      if (state.isOut)
        later.pool |= bit(state.moving);
      else
        later.fetched |= bit(state.moving);
      later.copied[state.moving] = later.now + moveNs[state.moving];
      later.linkIsNew = true;
      later.moving = none;
      later.isOut = false;
      later.moveEnd = 0;
    }
    reach(later);
  }

  /// What an operator can read now.
  Set readable(const State &state) const {
    Set set = state.here;
    if (state.op != none)
      set &= ~bit(state.op);
    if (state.moving != none && !state.isOut)
      set &= ~bit(state.moving);
    return set;
  }

  void start(const State &state, int32_t op) {
    if ((reads[op] & ~readable(state)) || (waits[op] & ~state.done) ||
        (state.here & bit(op)))
      return;
    if ((state.done & bit(op)) && (!repeats[op] || (blocks[op] & state.done) ||
                                   !(wanted(state.done) & bit(op))))
      return;
    withRoom(state, reads[op], bytes[op] + scratch[op], [&](Set here) {
      if (!state.deviceIsNew && !(reads[op] & state.arrived) &&
          !(state.left & ~here))
        return;
      State next = state;
      next.here = here | bit(op);
      next.done |= bit(op);
      next.op = static_cast<int8_t>(op);
      next.opEnd = state.now + ns[op];
      reach(next);
    });
  }

  /// Results stay.
  void move(const State &state, int32_t tensor) {
    State next = state;
    next.moving = static_cast<int8_t>(tensor);
    next.moveEnd = state.now + moveNs[tensor];
    if (!(wanted(state.done) & bit(tensor)) || (fixed & bit(tensor)))
      return;
    if (!(state.pool & bit(tensor))) {
      if (!(readable(state) & bit(tensor)) || (kept & bit(tensor)) ||
          !(state.linkIsNew || (state.arrived & bit(tensor))))
        return;
      next.isOut = true;
      reach(next);
    } else if (!(state.here & bit(tensor)) &&
               (!(state.fetched & bit(tensor)) ||
                state.copied[tensor] <= state.now)) {
      withRoom(state, 0, bytes[tensor], [&](Set here) {
        State in = next;
        in.here = here | bit(tensor);
        reach(in);
      });
    }
  }

  int32_t count;
  bool mayMove;
  std::vector<int64_t> ns, moveNs, bytes, scratch;
  std::vector<Set> reads, waits, blocks;
  std::vector<uint8_t> repeats;
  Set kept = 0, fixed = 0;
  int64_t room;
  int64_t best = 0;
  std::vector<State> states;
  std::unordered_map<uint64_t, std::vector<int32_t>> known;
  std::priority_queue<Entry> queue;
};

} // namespace baechi::placement::test

#endif // BAECHI_UNITTESTS_PLACEMENT_FITOPTIMUM_H

//===- SmallFit.cpp - The shortest step of a small graph ------------------===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Recompute/SmallFit.h"

#include <algorithm>
#include <array>
#include <bit>
#include <limits>
#include <queue>
#include <unordered_map>
#include <utility>

using namespace baechi::placement;
using namespace baechi::placement::recompute;
using namespace baechi::placement::recompute::small;

namespace {

bool isCopiedAsSoon(const State &a, const State &b) {
  for (Set each = a.fetched; each; each &= each - 1)
    if (int32_t tensor = firstOf(each);
        a.copied[tensor] > b.now &&
        (!(b.fetched & bit(tensor)) || a.copied[tensor] > b.copied[tensor]))
      return false;
  return true;
}

/// Everything that follows the one can follow the other, as early.
bool isAsGood(const State &a, const State &b) {
  return (b.here & ~a.here) == 0 && (b.pool & ~a.pool) == 0 && a.now <= b.now &&
         a.runEnd <= b.runEnd && a.moveEnd <= b.moveEnd &&
         a.runFree >= b.runFree && a.moveFree >= b.moveFree &&
         (b.come & ~a.come) == 0 && (b.left & ~a.left) == 0 &&
         isCopiedAsSoon(a, b);
}

/// The shortest way (Hart, Nilsson, Raphael, 1968) over what has run, is here
/// and is in the pool. The time that is left is the operators' that have not
/// run. Where little has room, most states lead nowhere, and a search that asks
/// for the time alone ends among the first operators; so beams that hold on to
/// a few states of each number of operators (Lowerre 1976) go ahead, each wider
/// than the one before and with a bound of what that has found.
class Search {
public:
  Search(const SpillGraph &graph, std::span<const uint8_t> mayRepeat,
         int64_t limit, int64_t mostNs, size_t mostStates)
      : graph(graph), tensors(graph.tensors), limit(limit), most(mostNs),
        mostStates(mostStates), reads(tensors.numOps(), 0),
        makes(tensors.numOps(), 0), waitsFor(tensors.numOps(), 0),
        blockedBy(tensors.numOps(), 0) {
    all = bit(tensors.numOps()) - 1;
    for (int32_t op = 0; op < tensors.numOps(); ++op) {
      for (int32_t tensor : tensors.operands[op])
        reads[op] |= bit(tensor);
      for (int32_t tensor = tensors.firstTensor[op];
           tensor < tensors.firstTensor[op + 1]; ++tensor)
        makes[op] |= bit(tensor);
      for (int32_t user : tensors.controlUsers[op]) {
        waitsFor[user] |= bit(op);
        blockedBy[op] |= bit(user);
      }
      if (!mayRepeat.empty() && mayRepeat[op])
        repeats |= bit(op);
    }
    for (int32_t tensor = 0; tensor < tensors.numTensors(); ++tensor) {
      if (tensors.kept[tensor])
        kept |= bit(tensor);
      if (tensors.bytes[tensor] == 0)
        fixed |= bit(tensor);
      if (graph.mayGo[tensor])
        mayGo |= bit(tensor);
    }
  }

  std::optional<RunsWithStays> run() {
    std::optional<RunsWithStays> best;
    for (size_t share : {512, 128, 32, 8})
      if (!seesAll)
        search(mostStates / share + 1, /*isBeam=*/true, best);
    if (!seesAll)
      search(mostStates, /*isBeam=*/false, best);
    return best;
  }

private:
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

  /// What is left to do from a state on, at least.
  struct Left {
    int64_t runNs = 0, moveNs = 0;
    bool isPossible = true;
  };

  void search(size_t width, bool isBeam, std::optional<RunsWithStays> &best);
  bool isEnd(const State &state) const;
  void reach(State state);
  void expand(const State &state, int32_t number);
  void wait(State state, int32_t number);
  void start(const State &state, int32_t op, int32_t number);
  void move(const State &state, int32_t tensor, int32_t number);
  template <typename Function>
  void letGo(Set here, Set gone, Set may, int64_t lacking, Function then);
  template <typename Function>
  void withRoom(const State &state, Set stays, int64_t bytes, Function then);
  Set wanted(Set done) const;
  Set pinned(const State &state) const;
  Set readable(const State &state) const;
  Left leftOf(const State &state) const;
  int64_t bytesOf(Set set) const;
  std::vector<State> wayTo(int32_t end) const;

  const SpillGraph &graph;
  const RepeatGraph &tensors;
  int64_t limit, most;
  size_t mostStates;
  bool seesAll = false; ///< nothing was left out
  Set all = 0, repeats = 0;
  Set kept = 0, fixed = 0, mayGo = 0;
  std::vector<Set> reads, makes;        ///< per operator: tensors
  std::vector<Set> waitsFor, blockedBy; ///< per operator: operators
  std::vector<State> states;
  std::unordered_map<uint64_t, std::vector<int32_t>> known;
  /// Per number of operators that have run, of a beam; else one.
  std::vector<std::priority_queue<Entry>> queues;
};

int64_t Search::bytesOf(Set set) const {
  int64_t bytes = 0;
  for (; set; set &= set - 1)
    bytes += tensors.bytes[firstOf(set)];
  return bytes;
}

/// What has not run has to, and so has what made a tensor that is nowhere and
/// is read by that; what is in the pool alone and cannot be made again has to
/// come.
Search::Left Search::leftOf(const State &state) const {
  Left left;
  Set needed = kept & ~(state.pool & mayGo);
  for (Set ops = all & ~state.done; ops; ops &= ops - 1) {
    left.runNs += tensors.timeNs[firstOf(ops)];
    needed |= reads[firstOf(ops)];
  }
  Set again = 0;
  for (Set open = needed & ~state.here; open;) {
    int32_t tensor = firstOf(open);
    open &= open - 1;
    int32_t op = tensors.producer[tensor];
    if (!(state.done & bit(op)) || (again & bit(op)))
      continue;
    if (state.pool & bit(tensor)) {
      left.moveNs += repeats & bit(op) ? 0 : graph.inNs[tensor];
      continue;
    }
    left.isPossible &= (repeats & bit(op)) != 0;
    again |= bit(op);
    left.runNs += tensors.timeNs[op];
    open |= reads[op] & ~(state.here | state.pool);
  }
  return left;
}

/// What is kept, and what operators read that have not run, or may have to run
/// again for these.
Set Search::wanted(Set done) const {
  Set found = kept;
  for (Set left = all & ~done; left; left &= left - 1)
    found |= reads[firstOf(left)];
  for (Set open = found; open;) {
    int32_t op = tensors.producer[firstOf(open)];
    open &= open - 1;
    if (!(repeats & bit(op)))
      continue;
    open |= reads[op] & ~found;
    found |= reads[op];
  }
  return found;
}

Set Search::pinned(const State &state) const {
  Set set = fixed;
  if (state.running != none)
    set |= reads[state.running] | makes[state.running];
  if (state.moving != none)
    set |= bit(state.moving);
  return set;
}

Set Search::readable(const State &state) const {
  Set set = state.here;
  if (state.running != none)
    set &= ~makes[state.running];
  if (state.moving != none && !state.isOut)
    set &= ~bit(state.moving);
  return set;
}

bool Search::isEnd(const State &state) const {
  return state.done == all && state.running == none && state.moving == none &&
         !(kept & ~state.here & ~(state.pool & mayGo));
}

/// Looks for ways that are plans and shorter than `most`, which is then what
/// the shortest takes, \p best. \p width: of a beam, the states of each queue
/// that are followed; else, how many there may be.
void Search::search(size_t width, bool isBeam,
                    std::optional<RunsWithStays> &best) {
  states.clear();
  known.clear();
  queues.assign(isBeam ? tensors.numOps() + 1 : 1, {});
  reach({});
  seesAll = true;
  for (auto &queue : queues) {
    for (size_t followed = 0;
         !queue.empty() && (isBeam ? followed : states.size()) < width;) {
      Entry entry = queue.top();
      queue.pop();
      State state = states[entry.number];
      if (state.isWorse || entry.bound >= most)
        continue;
      if (!isEnd(state)) {
        ++followed;
        expand(state, entry.number);
      } else if (auto found = planOf(graph, wayTo(entry.number))) {
        most = state.now;
        best = std::move(found);
      }
    }
    seesAll &= queue.empty() || queue.top().bound >= most;
  }
}

void Search::reach(State state) {
  state.here &= pinned(state) | wanted(state.done);
  Left left = leftOf(state);
  int64_t from = std::max(state.now, state.runEnd);
  int64_t moved = std::max(state.now, state.moveEnd) + left.moveNs;
  if (!left.isPossible || std::max(from + left.runNs, moved) >= most)
    return;
  uint64_t key = uint64_t(state.done) << 32 | (state.running + 1) << 8 |
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
  int32_t done = std::popcount(state.done);
  queues[queues.size() > 1 ? done : 0].push(
      {std::max(from + left.runNs, moved), done, number});
  states.push_back(state);
}

void Search::expand(const State &state, int32_t number) {
  if (state.running == none)
    for (int32_t op = 0; op < tensors.numOps(); ++op)
      start(state, op, number);
  if (state.moving == none)
    for (Set may = mayGo & wanted(state.done); may; may &= may - 1)
      move(state, firstOf(may), number);
  wait(state, number);
}

/// Until something that is under way ends.
void Search::wait(State state, int32_t number) {
  constexpr int64_t never = std::numeric_limits<int64_t>::max();
  int64_t then = never;
  if (state.running != none)
    then = std::min(then, state.runEnd);
  if (state.moving != none)
    then = std::min(then, state.moveEnd);
  if (state.moving == none)
    for (Set each = state.fetched & ~state.here; each; each &= each - 1)
      if (int64_t at = state.copied[firstOf(each)]; at > state.now)
        then = std::min(then, at);
  if (then == never)
    return;
  if (then > state.now) {
    state.runFree = state.moveFree = false;
    state.come = state.left = 0;
  }
  state.now = then;
  if (state.running != none && state.runEnd <= then) {
    state.come |= makes[state.running];
    state.running = none;
    state.runEnd = 0;
    state.runFree = true;
  }
  if (state.moving != none && state.moveEnd <= then) {
    Set moved = bit(state.moving);
    (state.isOut ? state.left : state.come) |= moved;
    if (state.isOut) {
      state.pool |= moved;
    } else {
      state.fetched |= moved;
      state.copied[state.moving] = then + graph.inNs[state.moving];
    }
    state.moving = none;
    state.isOut = false;
    state.moveEnd = 0;
    state.moveFree = true;
  }
  state.act = Act::Wait;
  state.before = number;
  reach(state);
}

/// Calls \p then with what is still here, for every way to let go of as little
/// as leaves room for \p bytes.
template <typename Function>
void Search::withRoom(const State &state, Set stays, int64_t bytes,
                      Function then) {
  stays |= pinned(state);
  if (state.running != none)
    bytes += tensors.scratch[state.running];
  letGo(state.here, 0, state.here & ~stays,
        tensors.resident + bytesOf(state.here) + bytes - limit, then);
}

template <typename Function>
void Search::letGo(Set here, Set gone, Set may, int64_t lacking,
                   Function then) {
  if (lacking <= 0) {
    for (Set each = gone; each; each &= each - 1)
      if (lacking + tensors.bytes[firstOf(each)] <= 0)
        return;
    then(here);
    return;
  }
  for (; may; may &= may - 1) {
    int32_t tensor = firstOf(may);
    letGo(here & ~bit(tensor), gone | bit(tensor), may & (may - 1),
          lacking - tensors.bytes[tensor], then);
  }
}

void Search::start(const State &given, int32_t op, int32_t number) {
  State state = given;
  if ((reads[op] & ~readable(state)) || (waitsFor[op] & ~state.done))
    return;
  if (state.done & bit(op)) {
    Set lacking = makes[op] & ~state.here & wanted(state.done);
    if (!(repeats & bit(op)) || (blockedBy[op] & state.done) || !lacking ||
        (state.moving != none && (makes[op] & bit(state.moving))))
      return;
    // All that it makes is made anew, and read from then on.
    state.here &= ~makes[op];
    state.pool &= ~makes[op];
    state.fetched &= ~makes[op];
  }
  withRoom(state, reads[op], tensors.needs[op], [&](Set here) {
    if (!state.runFree && !(reads[op] & state.come) && !(state.left & ~here))
      return;
    State next = state;
    next.here = here | makes[op];
    next.done |= bit(op);
    next.running = static_cast<int8_t>(op);
    next.runEnd = state.now + tensors.timeNs[op];
    next.act = Act::Run;
    next.what = next.running;
    next.before = number;
    reach(next);
  });
}

void Search::move(const State &state, int32_t tensor, int32_t number) {
  State next = state;
  next.moving = next.what = static_cast<int8_t>(tensor);
  next.before = number;
  if (!(state.pool & bit(tensor))) {
    if (!(readable(state) & bit(tensor)) ||
        !(state.moveFree || (state.come & bit(tensor))))
      return;
    next.isOut = true;
    next.act = Act::Out;
    next.moveEnd = state.now + graph.outNs[tensor];
    reach(next);
    return;
  }
  if ((state.here & bit(tensor)) ||
      ((state.fetched & bit(tensor)) && state.copied[tensor] > state.now))
    return;
  next.act = Act::In;
  next.moveEnd = state.now + graph.inNs[tensor];
  withRoom(state, 0, tensors.bytes[tensor], [&](Set here) {
    State in = next;
    in.here = here | bit(tensor);
    reach(in);
  });
}

/// The states from the first to this one.
std::vector<State> Search::wayTo(int32_t end) const {
  std::vector<State> way;
  for (int32_t number = end; number >= 0; number = states[number].before)
    way.push_back(states[number]);
  std::reverse(way.begin(), way.end());
  return way;
}

} // namespace

std::optional<RunsWithStays> baechi::placement::recompute::shortestOfSmall(
    const SpillGraph &graph, std::span<const uint8_t> mayRepeat, int64_t limit,
    int64_t mostNs, size_t mostStates) {
  if (mostStates == 0 || graph.tensors.numOps() > mostMembers ||
      graph.tensors.numTensors() > mostMembers || !graph.inPool.empty())
    return std::nullopt;
  return Search(graph, mayRepeat, limit, mostNs, mostStates).run();
}

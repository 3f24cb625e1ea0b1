//===- OrderingWaits.cpp - When it pays that something waits
//---------------===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Exact/Ordering.h"

#include <algorithm>

using namespace baechi::placement;
using namespace baechi::placement::exact;

/// Nothing more starts now. What is too much in memory must be given up first.
void Ordering::wait(State state, const Heads &heads) {
  if (problem.anyTight) {
    Levels level;
    problem.levels(state.progress, level, /*onlyCertain=*/false);
    for (int32_t d = 0; d < instance.numDevices; ++d) {
      if (level[d] <= model.deviceMemory(d))
        continue;
      for (auto [copy, movedIndex] : problem.droppable(state.progress, d)) {
        State child = state;
        if (copy < 0)
          child.progress.homeDropped.set(movedIndex);
        else
          child.progress.dropped.set(copy);
        wait(child, heads);
      }
      return;
    }
  }
  if (markWaiting(state, heads))
    advance(state);
}

/// Notes what could start and does not. False when that cannot pay: nothing
/// else could use its device, its link or the memory that it takes.
bool Ordering::markWaiting(State &state, const Heads &heads) const {
  const Progress &at = state.progress;
  for (const Action &action : actions) {
    if (!canStart(state, action))
      continue;
    if (!isMemoryFree(state, action)) {
      Progress next = at;
      if (action.copy < 0) {
        next.started |= OpSet(1) << action.node;
      } else {
        next.copyStarted.set(action.copy);
        next.source[action.copy] = static_cast<int8_t>(action.from);
      }
      if (lengthOf(action) == 0 || !problem.fits(next, /*onlyCertain=*/false))
        continue;
    }
    if (action.copy < 0)
      state.waitsSince[action.node] = state.now;
    else if (problem.copies[action.copy].readers &&
             action.from == problem.moved[problem.copies[action.copy].of].home)
      state.copyWaitsSince[action.copy] = state.now;
  }
  // Per device: until when another operator must have started, when the first
  // can, and whether anything can that does not wait itself.
  std::array<int64_t, maxDevices> deadline, next;
  deadline.fill(never);
  next.fill(never);
  DeviceSet waiting = 0, comes = 0;
  for (int32_t i = 0; i < instance.numNodes; ++i) {
    int32_t d = problem.device[i];
    if (at.started >> i & 1)
      continue;
    if (state.waitsSince[i] == notWaiting) {
      if (problem.time[i] > 0)
        next[d] = std::min(next[d], heads.node[i]);
      comes |= DeviceSet(1) << d;
      continue;
    }
    waiting |= DeviceSet(1) << d;
    if (isMemoryFree(state, {i, -1, -1, 0}))
      deadline[d] =
          std::min(deadline[d], state.waitsSince[i] + problem.time[i]);
  }
  for (size_t c = 0; c < problem.copies.size(); ++c)
    if (!at.copyStarted[c] &&
        (state.copyWaitsSince[c] == notWaiting || instance.numDevices > 2))
      comes |= DeviceSet(1) << problem.copies[c].to;
  if (waiting & ~comes)
    return false;
  for (int32_t d = 0; d < instance.numDevices; ++d)
    if (deadline[d] != never && next[d] >= deadline[d])
      return false;
  for (size_t c = 0; c < problem.copies.size(); ++c)
    if (!at.copyStarted[c] && state.copyWaitsSince[c] != notWaiting &&
        !copyMayWait(state, heads, static_cast<int32_t>(c)))
      return false;
  return true;
}

/// True when something else may use what \p waiting, which waits for nothing
/// else, could be carried by meanwhile, or bring it sooner.
bool Ordering::copyMayWait(const State &state, const Heads &heads,
                           int32_t waiting) const {
  const Progress &at = state.progress;
  const Copy &copy = problem.copies[waiting];
  int32_t home = problem.moved[copy.of].home;
  if (!isMemoryFree(state, {-1, waiting, home, 0}))
    return true;
  int64_t ns = problem.copyNs(copy, home);
  int64_t last = state.copyWaitsSince[waiting] + ns;
  if (instance.pathNs(copy.tensor, home, copy.to) < ns)
    return true;
  for (int32_t c = 0; c < static_cast<int32_t>(problem.copies.size()); ++c) {
    if (c == waiting)
      continue;
    const Copy &other = problem.copies[c];
    if (at.copyStarted[c]) {
      // A copy on another device may be a better source.
      if (other.of != copy.of)
        continue;
      int64_t on = instance.pathNs(copy.tensor, other.to, copy.to);
      if (on != never && std::max(state.now, state.copyEnd[c]) + on < last)
        return true;
      continue;
    }
    bool waitsToo = state.copyWaitsSince[c] != notWaiting &&
                    (other.sources & (other.sources - 1)) == 0;
    if (!waitsToo && problem.wanted(at, other.of) &&
        heads.available[other.of] < last && mayShareCarrier(c, home, copy.to))
      return true;
  }
  return false;
}

/// True when something waited while its device or link was free for all the
/// time that it needs, and no memory that it takes was or will be missed.
bool Ordering::waitedTooLong(const State &state) const {
  const Progress &at = state.progress;
  for (int32_t i = 0; i < instance.numNodes; ++i)
    if (!(at.started >> i & 1) && state.waitsSince[i] != notWaiting &&
        state.waitsSince[i] + problem.time[i] <= state.now &&
        isMemoryFree(state, {i, -1, -1, 0}))
      return true;
  for (size_t c = 0; c < problem.copies.size(); ++c) {
    if (at.copyStarted[c] || state.copyWaitsSince[c] == notWaiting)
      continue;
    const Copy &copy = problem.copies[c];
    int32_t home = problem.moved[copy.of].home;
    if (state.copyWaitsSince[c] + problem.copyNs(copy, home) <= state.now &&
        isMemoryFree(state, {-1, static_cast<int32_t>(c), home, 0}))
      return true;
  }
  return false;
}

/// To the next time at which something ends or a signal arrives.
void Ordering::advance(State state) {
  Progress &at = state.progress;
  int64_t next = never;
  auto event = [&](int64_t time) {
    if (time > state.now)
      next = std::min(next, time);
  };
  forEachBit(at.started & ~at.ended, [&](int32_t i) { event(state.end[i]); });
  CopySet flying = at.copyStarted & ~at.copyEnded;
  for (size_t c = flying._Find_first(); c < flying.size();
       c = flying._Find_next(c))
    event(state.copyEnd[c]);
  for (int32_t i = 0; i < instance.numNodes; ++i)
    if (!(at.started >> i & 1))
      for (const auto &signal : problem.signalsTo[i])
        if (at.ended >> signal.from & 1)
          event(state.end[signal.from] + signal.latency);
  if (next == never)
    return;
  state.now = next;
  state.rank = 0;
  forEachBit(at.started & ~at.ended, [&](int32_t i) {
    if (state.end[i] <= next)
      at.ended |= OpSet(1) << i;
  });
  for (size_t c = flying._Find_first(); c < flying.size();
       c = flying._Find_next(c))
    if (state.copyEnd[c] <= next)
      at.copyEnded.set(c);
  state.tight = tightDevices(at);
  if (waitedTooLong(state) || isDominated(state))
    return;
  int32_t entry = memorize(state);
  explore(state);
  if (entry >= 0)
    memo.entries[entry].isOpen = false;
}

//===- Ordering.cpp - The best schedule of an assignment --------*- C++ -*-===//
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

Ordering::Ordering(const Assigned &problem, Effort &effort)
    : problem(problem), instance(problem.instance), model(problem.model),
      effort(effort), linkModel(model.machine->linkModel) {
  for (int32_t i = 0; i < instance.numNodes; ++i) {
    actions.push_back({i, -1, -1, problem.tail[i]});
    hasInstants |= problem.time[i] == 0;
  }
  for (size_t c = 0; c < problem.copies.size(); ++c) {
    const Copy &copy = problem.copies[c];
    forEachBit(copy.sources, [&](int32_t from) {
      int64_t ns = problem.copyNs(copy, from);
      hasInstants |= ns == 0;
      actions.push_back({-1, static_cast<int32_t>(c), from, copy.tail + ns});
    });
  }
  std::stable_sort(
      actions.begin(), actions.end(),
      [](const Action &a, const Action &b) { return a.urgency > b.urgency; });
}

bool Ordering::improve(int64_t below, int64_t goodEnough, Timetable &found) {
  cutoff = below;
  enough = goodEnough;
  best = &found;
  memo.clear();
  State root;
  root.end.fill(never);
  root.copyEnd.fill(never);
  root.waitsSince.fill(notWaiting);
  root.copyWaitsSince.fill(notWaiting);
  root.tight = tightDevices(root.progress);
  explore(root);
  return cutoff < below;
}

int64_t Ordering::lengthOf(const Action &action) const {
  return action.copy < 0
             ? problem.time[action.node]
             : problem.copyNs(problem.copies[action.copy], action.from);
}

/// True when some transfer that makes \p copy could occupy what one between
/// \p from and \p to does.
bool Ordering::mayShareCarrier(int32_t copy, int32_t from, int32_t to) const {
  int32_t target = problem.copies[copy].to;
  bool sameSource = problem.copies[copy].sources >> from & 1;
  switch (linkModel) {
  case LinkModel::Unlimited:
    return false;
  case LinkModel::Parallel:
    return target == to && sameSource;
  case LinkModel::Duplex:
    return target == to || sameSource;
  case LinkModel::Sequential:
    return target == to || target == from || sameSource ||
           (problem.copies[copy].sources >> to & 1);
  }
  return true;
}

/// The devices where all that is there and all that may still come might not
/// fit.
DeviceSet Ordering::tightDevices(const Progress &at) const {
  DeviceSet tight = 0;
  if (!problem.anyTight)
    return tight;
  Levels most;
  problem.levels(at, most, /*onlyCertain=*/false);
  std::array<int64_t, maxDevices> scratch{};
  for (int32_t i = 0; i < instance.numNodes; ++i)
    if (!(at.started >> i & 1)) {
      int32_t d = problem.device[i];
      most[d] += instance.outputBytes[i];
      scratch[d] = std::max(scratch[d], model.scratch[i]);
    }
  for (size_t c = 0; c < problem.copies.size(); ++c)
    if (!at.copyStarted[c])
      most[problem.copies[c].to] += model.copy[problem.copies[c].tensor];
  for (int32_t d = 0; d < instance.numDevices; ++d)
    if (most[d] + scratch[d] > model.deviceMemory(d))
      tight |= DeviceSet(1) << d;
  return tight;
}

int32_t Ordering::deviceOf(const Action &action) const {
  return action.copy < 0 ? problem.device[action.node]
                         : problem.copies[action.copy].to;
}

/// Bytes that a start takes on its device.
int64_t Ordering::bytesOf(const Action &action) const {
  return action.copy < 0
             ? model.scratch[action.node] + instance.outputBytes[action.node]
             : model.copy[problem.copies[action.copy].tensor];
}

/// True when an early start never takes memory that another needs.
bool Ordering::isMemoryFree(const State &state, const Action &action) const {
  return !(state.tight >> deviceOf(action) & 1) || bytesOf(action) == 0;
}

bool Ordering::canStart(const State &state, const Action &action) const {
  const Progress &at = state.progress;
  if (action.copy < 0) {
    int32_t i = action.node, d = problem.device[i];
    if (at.started >> i & 1 || problem.localSources[i] & ~at.ended ||
        state.waitsSince[i] != notWaiting)
      return false;
    if (problem.time[i] > 0 && state.deviceFree[d] > state.now)
      return false;
    for (int32_t c : problem.copiesRead[i])
      if (!at.copyEnded[c])
        return false;
    for (const auto &signal : problem.signalsTo[i])
      if (!(at.ended >> signal.from & 1) ||
          state.end[signal.from] + signal.latency > state.now)
        return false;
    int32_t twin = problem.twinBefore[i];
    return twin < 0 || (at.started >> twin & 1);
  }
  const Copy &copy = problem.copies[action.copy];
  const Moved &tensor = problem.moved[copy.of];
  if (at.copyStarted[action.copy])
    return false;
  if (!problem.holds(at, copy.of, action.from) ||
      (action.from == tensor.home &&
       state.copyWaitsSince[action.copy] != notWaiting))
    return false;
  int64_t ns = problem.copyNs(copy, action.from);
  if (!copy.readers &&
      (!problem.wanted(at, copy.of) ||
       (cutoff != never && state.now + ns + copy.tail >= cutoff)))
    return false;
  if (ns == 0)
    return true;
  auto [a, b] = problem.carriers(action.from, copy.to);
  return (a < 0 || state.linkFree[a] <= state.now) &&
         (b < 0 || state.linkFree[b] <= state.now);
}

/// True when starting now is never worse: no memory is at stake, and nothing
/// else could use the device or link before this is over.
bool Ordering::mustStart(const State &state, const Heads &heads,
                         const Action &action) const {
  if (!isMemoryFree(state, action))
    return false;
  const Progress &at = state.progress;
  int64_t until = state.now + lengthOf(action);
  if (action.copy < 0) {
    int32_t d = problem.device[action.node];
    for (int32_t i = 0; i < instance.numNodes; ++i)
      if (i != action.node && problem.device[i] == d &&
          !(at.started >> i & 1) && problem.time[i] > 0 &&
          state.waitsSince[i] == notWaiting && heads.node[i] < until)
        return false;
    return true;
  }
  const Copy &copy = problem.copies[action.copy];
  const Moved &tensor = problem.moved[copy.of];
  if (!copy.readers)
    return false;
  // Another source might be faster.
  auto arrivesSooner = [&](int32_t from, int64_t available) {
    int64_t ns = instance.pathNs(copy.tensor, from, copy.to);
    return ns != never && std::max(state.now, available) + ns < until;
  };
  if (arrivesSooner(tensor.home, state.now))
    return false;
  for (int32_t c = tensor.firstCopy; c < tensor.endCopy; ++c)
    if (at.copyStarted[c] &&
        arrivesSooner(problem.copies[c].to, state.copyEnd[c]))
      return false;
  for (int32_t c = 0; c < static_cast<int32_t>(problem.copies.size()); ++c)
    if (c != action.copy && !at.copyStarted[c] &&
        problem.wanted(at, problem.copies[c].of) &&
        heads.available[problem.copies[c].of] < until &&
        mayShareCarrier(c, action.from, copy.to))
      return false;
  return true;
}

void Ordering::start(State &state, const Action &action) const {
  Progress &at = state.progress;
  int64_t end = state.now + lengthOf(action);
  bool instant = end == state.now;
  // What it takes, others may have waited for.
  int32_t target = deviceOf(action);
  if ((state.tight >> target & 1) && bytesOf(action) > 0) {
    for (int32_t k = 0; k < instance.numNodes; ++k)
      if (problem.device[k] == target)
        state.waitsSince[k] = notWaiting;
    for (size_t c = 0; c < problem.copies.size(); ++c)
      if (problem.copies[c].to == target)
        state.copyWaitsSince[c] = notWaiting;
  }
  if (action.copy < 0) {
    int32_t i = action.node, d = problem.device[i];
    at.started |= OpSet(1) << i;
    state.end[i] = end;
    if (instant) {
      at.ended |= OpSet(1) << i;
      return;
    }
    state.deviceFree[d] = end;
    for (int32_t k = 0; k < instance.numNodes; ++k)
      if (problem.device[k] == d)
        state.waitsSince[k] = notWaiting;
    return;
  }
  const Copy &copy = problem.copies[action.copy];
  at.copyStarted.set(action.copy);
  at.source[action.copy] = static_cast<int8_t>(action.from);
  state.copyEnd[action.copy] = end;
  if (instant) {
    at.copyEnded.set(action.copy);
    return;
  }
  auto [a, b] = problem.carriers(action.from, copy.to);
  for (int32_t carrier : {a, b})
    if (carrier >= 0)
      state.linkFree[carrier] = end;
  for (size_t c = 0; c < problem.copies.size(); ++c) {
    auto [x, y] = problem.carriers(problem.moved[problem.copies[c].of].home,
                                   problem.copies[c].to);
    if (a >= 0 && (x == a || x == b || (y >= 0 && (y == a || y == b))))
      state.copyWaitsSince[c] = notWaiting;
  }
}

void Ordering::explore(const State &state) {
  if (stopped())
    return;
  ++effort.nodes;
  Heads heads;
  if (!findHeads(state, heads))
    return;
  if (state.progress.started == (OpSet(1) << instance.numNodes) - 1) {
    record(state);
    return;
  }
  if (state.rank == 0 &&
      (!machinesAllow(state, heads) || !linksAllow(state, heads)))
    return;
  auto count = static_cast<int32_t>(actions.size());
  for (int32_t rank = state.rank; rank < count; ++rank) {
    const Action &action = actions[rank];
    if (!canStart(state, action))
      continue;
    State child = state;
    start(child, action);
    // What takes no time can make others ready at once.
    child.rank = lengthOf(action) == 0 ? 0 : rank + 1;
    bool must = mustStart(state, heads, action);
    if (!problem.anyTight || hasInstants ||
        problem.fits(child.progress, /*onlyCertain=*/true))
      explore(child);
    if (must || stopped())
      return;
  }
  wait(state, heads);
}

/// True when an explored state with the same started has ended it all no later,
/// as far as anything to come can tell.
///
/// That its own branches were cut by other rules does not matter: each rule
/// replaces a schedule by one that is no worse and that is explored earlier
/// (starting comes before waiting, the more urgent before the less), so that
/// there is no circle.
bool Ordering::isDominated(const State &state) {
  auto covers = [&](const Pending &p) {
    if (p.source < 0)
      return p.at <= state.end[p.id] ||
             p.at + problem.longestSignal[p.id] <= state.now;
    return p.at <= state.now || (p.at <= state.copyEnd[p.id] &&
                                 p.source == state.progress.source[p.id]);
  };
  for (int32_t e = memo.firstOf(MemoKey(state.progress)); e >= 0;
       e = memo.entries[e].next) {
    const Memo::Entry &entry = memo.entries[e];
    // One that is being explored has come here by waiting.
    if (!entry.isOpen && entry.now <= state.now &&
        std::all_of(memo.pending.begin() + entry.begin,
                    memo.pending.begin() + entry.end, covers))
      return true;
  }
  return false;
}

/// Adds a state to the explored ones; -1: there are too many.
int32_t Ordering::memorize(const State &state) {
  constexpr size_t mostEntries = 1'000'000;
  if (memo.entries.size() >= mostEntries)
    return -1;
  auto begin = static_cast<int32_t>(memo.pending.size());
  const Progress &at = state.progress;
  forEachBit(at.started, [&](int32_t i) {
    if (state.end[i] + problem.longestSignal[i] > state.now)
      memo.pending.push_back({-1, static_cast<int16_t>(i), state.end[i]});
  });
  CopySet flying = at.copyStarted & ~at.copyEnded;
  for (size_t c = flying._Find_first(); c < flying.size();
       c = flying._Find_next(c))
    memo.pending.push_back(
        {at.source[c], static_cast<int16_t>(c), state.copyEnd[c]});
  int32_t &first = memo.firstOf(MemoKey(at));
  memo.entries.push_back({state.now, begin,
                          static_cast<int32_t>(memo.pending.size()), first,
                          /*isOpen=*/true});
  return first = static_cast<int32_t>(memo.entries.size()) - 1;
}

void Ordering::record(const State &state) {
  Timetable found(problem, state.progress, state.end, state.copyEnd);
  // What has ended without taking time was not looked at yet.
  if (problem.anyTight && hasInstants && found.makespan > state.now &&
      !problem.fits(state.progress, /*onlyCertain=*/false))
    return;
  cutoff = found.makespan;
  *best = std::move(found);
}

//===- ReadyQueue.cpp - What a device could start next ----------*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Placers/ReadyQueue.h"
#include "Schedule/Schedule.h"

#include <algorithm>

using namespace baechi::placement;
using namespace baechi::placement::placers;

namespace {

template <typename Entry>
void push(std::vector<Entry> &heap, std::type_identity_t<Entry> entry) {
  heap.push_back(entry);
  std::push_heap(heap.begin(), heap.end());
}

template <typename Entry> void pop(std::vector<Entry> &heap) {
  std::pop_heap(heap.begin(), heap.end());
  heap.pop_back();
}

} // namespace

void ReadyQueue::add(int32_t node) {
  schedule.arrivalOf(node, device, scratch);
  int64_t time = schedule.timeOf(scratch, device);
  if (time == never)
    return;
  push(later, {time, rank[node], node});
  // What is best stays so unless this one is better.
  int64_t start = std::max(time, schedule.deviceFree(device));
  if (isCurrent &&
      (best.node < 0 ||
       std::pair(start, rank[node]) < std::pair(best.start, rank[best.node]))) {
    best = {node, start};
    std::swap(bestArrival, scratch);
  }
}

/// Everything else can only have become later.
bool ReadyQueue::bestIsCurrent() const {
  if (!isCurrent || best.node < 0)
    return isCurrent;
  return open(best.node) &&
         best.start == std::max(schedule.timeOf(bestArrival, device),
                                schedule.deviceFree(device));
}

void ReadyQueue::setBest(int32_t node, int64_t start) {
  best = {node, start};
  std::swap(bestArrival, scratch);
  if (node >= 0)
    schedule.fetch(node);
}

/// Puts a node that came up where it belongs.
void ReadyQueue::keep(int32_t node, int32_t nodeRank) {
  schedule.arrivalOf(node, device, scratch);
  if (scratch.fixed == never)
    return;
  const Arrival::Wait *longest = nullptr;
  int64_t due = schedule.deviceFree(device);
  for (const Arrival::Wait &wait : scratch.waits)
    if (!longest ||
        schedule.endOf(wait, device) > schedule.endOf(*longest, device))
      longest = &wait;
  if (longest)
    due = std::max(due, schedule.endOf(*longest, device));
  if (scratch.fixed > due)
    push(later, {scratch.fixed, nodeRank, node});
  else if (longest)
    waiting[longest->home].insert({longest->length, nodeRank, node});
  else
    push(available, {0, nodeRank, node});
}

/// Those that need not be kept back any longer. They are taken in batches, so
/// that the processor may bring what will be asked of one while it looks at
/// another; what is kept back again is not due.
void ReadyQueue::admitDue() {
  constexpr size_t most = 16;
  int64_t free = schedule.deviceFree(device);
  while (!later.empty() && later.front().time <= free) {
    due.clear();
    while (due.size() < most && !later.empty() && later.front().time <= free) {
      due.push_back(later.front());
      schedule.fetchRow(later.front().node);
      pop(later);
    }
    std::erase_if(due, [&](const Timed &entry) { return !open(entry.node); });
    for (const Timed &entry : due)
      schedule.fetchOperands(entry.node);
    for (const Timed &entry : due)
      keep(entry.node, entry.rank);
  }
}

/// The most urgent that could start as soon as the device is free.
bool ReadyQueue::findNow() {
  int64_t free = schedule.deviceFree(device);
  for (;;) {
    int32_t from = -1;
    UrgencyTree::Item found{0, -1};
    if (!available.empty())
      found = {0, available.front().rank, available.front().node};
    for (int32_t home = 0; home < static_cast<int32_t>(waiting.size());
         ++home) {
      if (waiting[home].empty())
        continue;
      int64_t slack = free - schedule.linkFree(home, device);
      UrgencyTree::Item top = waiting[home].mostUrgent(slack);
      if (top.rank >= 0 && (found.rank < 0 || top.rank < found.rank)) {
        found = top;
        from = home;
      }
    }
    if (found.rank < 0)
      return false;
    int32_t node = found.node;
    bool isOpen = open(node);
    if (isOpen) {
      schedule.arrivalOf(node, device, scratch);
      if (schedule.timeOf(scratch, device) <= free) {
        setBest(node, free);
        return true;
      }
    }
    if (from < 0)
      pop(available);
    else
      waiting[from].erase(found);
    if (isOpen)
      keep(node, found.rank);
  }
}

/// When none could: the one that can start first. False when one has only been
/// put where it belongs now.
bool ReadyQueue::findLater() {
  Timed found{never, -1, -1};
  int32_t from = -1;
  UrgencyTree::Item item;
  if (!later.empty())
    found = later.front();
  for (int32_t home = 0; home < static_cast<int32_t>(waiting.size()); ++home) {
    if (waiting[home].empty())
      continue;
    const auto &top = waiting[home].shortest();
    Timed other{schedule.linkFree(home, device) + top.length, top.rank,
                top.node};
    if (found.rank < 0 || found < other) {
      found = other;
      from = home;
      item = top;
    }
  }
  if (found.rank < 0) {
    setBest(-1, 0);
    return true;
  }
  int32_t node = found.node;
  bool isOpen = open(node);
  if (isOpen) {
    schedule.arrivalOf(node, device, scratch);
    if (schedule.timeOf(scratch, device) == found.time) {
      setBest(node, found.time);
      return true;
    }
  }
  if (from < 0)
    pop(later);
  else
    waiting[from].erase(item);
  if (isOpen)
    keep(node, found.rank);
  return false;
}

ReadyQueue::First ReadyQueue::first() {
  if (bestIsCurrent())
    return best;
  do
    admitDue();
  while (!findNow() && !findLater());
  isCurrent = true;
  return best;
}

//===- FakeChecker.cpp - Are uses of device memory ordered -*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "FakeChecker.h"

#include <algorithm>

using namespace fakecuda;

void fakecuda::join(Clocks &into, const Clocks &other) {
  into.resize(std::max(into.size(), other.size()));
  for (size_t i = 0; i < other.size(); ++i)
    into[i] = std::max(into[i], other[i]);
}

static uint64_t at(const Clocks &clocks, size_t timeline) {
  return timeline < clocks.size() ? clocks[timeline] : 0;
}

size_t Checker::addTimeline() {
  timelines.emplace_back(timelines.size() + 1);
  return timelines.size() - 1;
}

const Clocks &Checker::advance(size_t timeline) {
  Clocks &clocks = timelines[timeline];
  clocks.resize(std::max(clocks.size(), timeline + 1));
  ++clocks[timeline];
  return clocks;
}

void Checker::allocate(uintptr_t begin, size_t bytes) {
  freed.erase(begin);
  allocations[begin] = {begin + bytes, {}};
}

void Checker::free(uintptr_t begin) {
  auto it = allocations.find(begin);
  if (it == allocations.end())
    return blame("memory is freed that is not allocated");
  // The host knows that all that used it has ended.
  for (const Use &use : it->second.uses)
    if (use.time > at(timelines[host], use.timeline))
      return blame(use.who + " may still use memory that is freed");
  freed[begin] = it->second.end;
  allocations.erase(it);
}

void Checker::drop(uintptr_t begin) {
  auto it = allocations.find(begin);
  freed[begin] = it->second.end;
  allocations.erase(it);
}

Checker::Allocations::iterator Checker::find(uintptr_t address) {
  auto it = allocations.upper_bound(address);
  if (it == allocations.begin())
    return allocations.end();
  --it;
  return address < it->second.end ? it : allocations.end();
}

void Checker::use(size_t timeline, uintptr_t begin, size_t bytes, bool writes,
                  const std::string &who) {
  if (bytes == 0)
    return;
  auto it = find(begin);
  if (it == allocations.end()) {
    auto old = freed.upper_bound(begin);
    if (old != freed.begin() && begin < std::prev(old)->second)
      blame(who + " uses memory that was freed");
    return; // the host's
  }
  if (begin + bytes > it->second.end)
    blame(who + " goes beyond its allocation");
  const Clocks &now = timelines[timeline];
  std::vector<Use> &uses = it->second.uses;
  for (const Use &before : uses)
    if (before.begin < begin + bytes && begin < before.end &&
        (before.writes || writes) && before.timeline != timeline &&
        before.time > at(now, before.timeline))
      blame(who + (writes ? " writes" : " reads") + " what " + before.who +
            (before.writes ? " writes" : " reads") +
            ", and nothing orders the two");
  // What the host has waited for cannot race any more.
  std::erase_if(uses, [&](const Use &use) {
    return use.time <= at(timelines[host], use.timeline);
  });
  uses.push_back(
      {begin, begin + bytes, writes, timeline, at(now, timeline), who});
}

void Checker::blame(const std::string &what) {
  if (std::find(misuses.begin(), misuses.end(), what) == misuses.end())
    misuses.push_back(what);
}

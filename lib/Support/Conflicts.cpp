//===- Conflicts.cpp - Which commands must follow which -*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Baechi/Support/Conflicts.h"

#include <algorithm>

using namespace baechi::support;

static constexpr size_t wordBits = 64;

Conflicts::Segments::iterator Conflicts::isolate(uintptr_t begin,
                                                 uintptr_t end) {
  auto cut = [&](uintptr_t at) {
    auto behind = segments.upper_bound(at);
    if (behind == segments.begin())
      return;
    auto around = std::prev(behind);
    if (around->first == at || around->second.end <= at)
      return;
    Segment upper = around->second;
    around->second.end = at;
    segments.emplace_hint(behind, at, std::move(upper));
  };
  cut(begin);
  cut(end);
  // What no segment has yet gets one.
  auto it = segments.lower_bound(begin);
  for (uintptr_t at = begin; at < end;) {
    if (it == segments.end() || it->first > at) {
      uintptr_t upTo =
          it == segments.end() ? end : std::min<uintptr_t>(end, it->first);
      it = segments.emplace_hint(it, at, Segment{upTo, none, {}});
    }
    at = it->second.end;
    ++it;
  }
  return segments.lower_bound(begin);
}

std::vector<size_t> Conflicts::add(std::span<const Access> accesses) {
  if (count - first == mostBetween)
    return addUnknown();
  std::vector<size_t> found;
  for (const Access &access : accesses) {
    if (access.begin >= access.end)
      continue;
    for (auto it = isolate(access.begin, access.end);
         it != segments.end() && it->first < access.end; ++it) {
      if (it->second.writer != none)
        found.push_back(it->second.writer);
      if (access.writes)
        found.insert(found.end(), it->second.readers.begin(),
                     it->second.readers.end());
    }
  }
  // Only now: a command is in no conflict with itself.
  for (bool writes : {false, true})
    for (const Access &access : accesses) {
      if (access.writes != writes || access.begin >= access.end)
        continue;
      auto it = isolate(access.begin, access.end);
      if (writes) {
        // What was cut is one again.
        it->second = {access.end, count, {}};
        segments.erase(std::next(it), segments.lower_bound(access.end));
        continue;
      }
      for (; it != segments.end() && it->first < access.end; ++it)
        it->second.readers.push_back(count);
    }
  std::vector<size_t> after = reduce(found);
  enter(after);
  if (after.empty() && barrier != none)
    after.push_back(barrier);
  return after;
}

/// Commands are numbered as they are asked for, so those that come before one
/// have lower numbers.
std::vector<size_t> Conflicts::reduce(std::vector<size_t> &found) const {
  std::sort(found.begin(), found.end());
  found.erase(std::unique(found.begin(), found.end()), found.end());
  std::vector<size_t> after;
  for (size_t i = found.size(); i-- > 0;)
    if (std::none_of(after.begin(), after.end(), [&](size_t later) {
          size_t at = found[i] - first;
          return before[later - first][at / wordBits] >> at % wordBits & 1;
        }))
      after.push_back(found[i]);
  std::reverse(after.begin(), after.end());
  return after;
}

void Conflicts::enter(const std::vector<size_t> &after) {
  Bits &all = before.emplace_back((count - first) / wordBits + 1);
  for (size_t one : after) {
    const Bits &its = before[one - first];
    for (size_t i = 0; i < its.size(); ++i)
      all[i] |= its[i];
    all[(one - first) / wordBits] |= uint64_t(1) << (one - first) % wordBits;
  }
  std::erase_if(last, [&](size_t one) {
    return std::binary_search(after.begin(), after.end(), one);
  });
  last.push_back(count++);
}

std::vector<size_t> Conflicts::addUnknown() {
  std::vector<size_t> after = std::move(last);
  if (after.empty() && barrier != none)
    after.push_back(barrier);
  barrier = count++;
  first = count;
  segments.clear();
  before.clear();
  last.clear();
  return after;
}

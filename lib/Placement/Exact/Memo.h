//===- Memo.h - States that were explored -----------------------*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef BAECHI_LIB_PLACEMENT_EXACT_MEMO_H
#define BAECHI_LIB_PLACEMENT_EXACT_MEMO_H

#include "Exact/Assigned.h"

#include <unordered_map>

namespace baechi::placement::exact {

/// What a later state must have in common with an explored one.
struct MemoKey {
  OpSet started = 0;
  CopySet copyStarted, dropped, homeDropped;

  explicit MemoKey(const Progress &at)
      : started(at.started), copyStarted(at.copyStarted), dropped(at.dropped),
        homeDropped(at.homeDropped) {}
  bool operator==(const MemoKey &) const = default;
};

struct MemoHash {
  size_t operator()(const MemoKey &key) const {
    std::hash<CopySet> hash;
    constexpr uint64_t mix = 0x9E3779B97F4A7C15ull;
    uint64_t value = key.started;
    for (const CopySet *set :
         {&key.copyStarted, &key.dropped, &key.homeDropped})
      value = (value ^ hash(*set)) * mix;
    return value ^ value >> 32;
  }
};

/// An operator or transfer of an explored state that is not over.
struct Pending {
  int8_t source; ///< of a copy; -1: an operator
  int16_t id;
  int64_t at; ///< when it ends
};

/// Explored states by what they have started. Entries of a key are a chain
/// through one array, what is pending in them lies in another.
class Memo {
public:
  struct Entry {
    int64_t now;
    int32_t begin, end; ///< in `pending`
    int32_t next;       ///< of the same key; -1: the last
    bool isOpen;        ///< it is still being explored
  };

  void clear() {
    first.clear();
    entries.clear();
    pending.clear();
  }
  /// The first entry of a key; -1: none.
  int32_t &firstOf(const MemoKey &key) {
    return first.try_emplace(key, -1).first->second;
  }

  std::vector<Entry> entries;
  std::vector<Pending> pending;

private:
  std::unordered_map<MemoKey, int32_t, MemoHash> first;
};

} // namespace baechi::placement::exact

#endif // BAECHI_LIB_PLACEMENT_EXACT_MEMO_H

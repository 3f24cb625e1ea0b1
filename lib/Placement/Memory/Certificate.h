//===- Certificate.h - An order that the rest still fits in -----*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// A schedule under memory limits cannot dead-lock as long as the steps that
/// are left fit one by one in some known order, the certificate. This is the
/// banker's algorithm (Dijkstra 1965, EWD 108) with that order in place of the
/// banker's search: a step may be taken out of turn exactly when the others
/// still fit in their order afterwards. Activation (Agullo et al. 2016; Aupy,
/// Brasseur & Marchal, "Dynamic memory-aware task-tree scheduling", 2017)
/// instead books memory in the order itself, for all that runs and all that
/// might.
///
/// Per device, a tree over the steps that allocate there holds the level during
/// each of them. Taking a step out of turn changes it on a few ranges: O(log n)
/// for everything that the step allocates and releases.
///
//===----------------------------------------------------------------------===//
#ifndef BAECHI_LIB_PLACEMENT_MEMORY_CERTIFICATE_H
#define BAECHI_LIB_PLACEMENT_MEMORY_CERTIFICATE_H

#include "Memory/Steps.h"

namespace baechi::placement::memory {

/// Numbers, a sum onto a range and the maximum of a range in O(log n) (Zhang
/// Kunwei 2002, a segment tree without recursion).
class RangeMaximum {
public:
  /// Makes any number of bytes that `check` accepts negative for good.
  static constexpr int64_t gone = -(int64_t(1) << 62);

  explicit RangeMaximum(const std::vector<int64_t> &values);
  /// Adds to the values from \p begin up to, not including, \p end.
  void add(int32_t begin, int32_t end, int64_t bytes);
  /// The largest from \p begin up to, not including, \p end; less than any
  /// number of bytes when that is none.
  int64_t max(int32_t begin, int32_t end) const;

private:
  int32_t leaves = 1;
  std::vector<int64_t> most; ///< of a node's range, without its ancestors' sums
  std::vector<int64_t> sum;  ///< what was added to all of a node's range
};

class Certificate {
public:
  /// \p order must be topological.
  Certificate(const Steps &steps, std::span<const Step> order);

  /// True when \p order fits the memories.
  bool fits() const;
  /// Takes \p s, which has nothing left to wait for, when all others still fit
  /// in their order afterwards; otherwise changes nothing and returns false.
  /// The next step of the order can always be taken once it fits at all.
  bool take(Step s);
  /// The first step that is left of those that allocate on a device; -1: none.
  Step next(int32_t d);

private:
  struct Change {
    int32_t device, begin, end;
    int64_t bytes;
  };

  void apply(Change change);
  int32_t lastHeld(int32_t holding) const;
  void release(int32_t holding);

  const Steps &steps;
  std::vector<std::vector<Step>> sequence; ///< per device: who allocates there
  std::vector<int32_t> nextAt;             ///< per device, into `sequence`
  std::vector<int32_t> place;              ///< step -> index in its sequence
  /// Transfer -> the last index where it comes from that its tensor is held
  /// there for its sake.
  std::vector<int32_t> sourcePlace;
  Rows uses;                        ///< holding -> steps, in order
  std::vector<int32_t> usesEnd;     ///< holding -> end of what is left of them
  std::vector<uint8_t> taken;       ///< per step
  std::vector<RangeMaximum> levels; ///< per device, along its sequence
  std::vector<Change> changes;      ///< of the step that is being taken
  std::vector<std::pair<int32_t, int32_t>> endsBefore; ///< likewise
};

} // namespace baechi::placement::memory

#endif // BAECHI_LIB_PLACEMENT_MEMORY_CERTIFICATE_H

//===- Schedule.h - Blocks that run at once --------------------*- C++ -*--===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Blocks of a loop's entries, and when which worker computes them: the
/// schedules of Orion (EuroSys 2019, section 4.4), with any number of keys that
/// rotate. Workers are logical: how many devices there are changes no block and
/// no order.
///
//===----------------------------------------------------------------------===//
#ifndef BAECHI_LOOPS_SCHEDULE_H
#define BAECHI_LOOPS_SCHEDULE_H

#include "Baechi/Loops/Verdict.h"

namespace baechi::loops {

struct Block {
  int32_t clock = 0, worker = 0;
  std::vector<int32_t> parts; ///< one for each axis
};

struct Schedule {
  /// What entries are put into blocks by: keys, or sums of them.
  std::vector<std::vector<int64_t>> axes; ///< coefficients of the keys
  /// For each axis where its parts begin, and the end of the last one.
  std::vector<std::vector<int64_t>> cuts;
  /// In the order that a serial run computes them; those of a clock at once.
  std::vector<Block> blocks;
  int32_t workers = 1;

  /// The parts that an entry lies in.
  std::vector<int32_t> partsOf(const std::vector<int64_t> &key) const;
};

/// Equal counts, where they can be: \p counts has the entries at lower,
/// lower + 1, ... No part is empty of values, so there may be fewer.
std::vector<int64_t>
balancedCuts(int64_t lower, const std::vector<int64_t> &counts, int32_t parts);

/// The axes of a scheme, for which cuts are to be given; none for a scheme that
/// has no blocks (serial, and timed without waves).
std::vector<std::vector<int64_t>> axesOf(const Loop &loop,
                                         const Verdict &verdict);

/// The schedule of a scheme that has blocks; \p cuts as in Schedule, parts of
/// the first axis in any number, of others a multiple of the workers'.
Schedule makeSchedule(const Loop &loop, const Verdict &verdict,
                      std::vector<std::vector<int64_t>> cuts, int32_t workers);

/// Integers from `first` up to `end`.
struct Span {
  int64_t first = 0, end = 0;

  bool empty() const { return first >= end; }
  bool meets(const Span &other) const {
    return !empty() && !other.empty() && first < other.end && other.first < end;
  }
};

/// What the values of \p sum over the keys of \p block lie in, or none where
/// that cannot be told.
std::optional<Span> spanOf(const Loop &loop, const Schedule &schedule,
                           const Block &block, const Affine &sum);

/// Where \p sum, which has no symbols, may be over all keys of \p loop.
struct Place {
  bool inside = false;  ///< never anywhere but in the span
  bool outside = false; ///< for some keys, surely
  /// What it lies in, as closely as is known.
  std::optional<int64_t> least, most;
};
Place placeOf(const Loop &loop, const Affine &sum, Span span);

/// Runs the accesses of \p entries (key vectors) in mind: two blocks of a clock
/// that touch an element which one of them writes, if there are any. Additions
/// to arrays with sums of each block's own, and buffered arrays, are none.
std::optional<std::string>
findRace(const Loop &loop, const Verdict &verdict, const Schedule &schedule,
         const std::vector<std::vector<int64_t>> &entries);

} // namespace baechi::loops

#endif // BAECHI_LOOPS_SCHEDULE_H

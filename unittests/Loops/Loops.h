//===- Loops.h - Loops in few words ----------------------------*- C++ -*--===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
/// \file
/// Loops in few words.
#ifndef BAECHI_UNITTESTS_LOOPS_LOOPS_H
#define BAECHI_UNITTESTS_LOOPS_LOOPS_H

#include "Baechi/Loops/Schedule.h"

namespace baechi::loops {

inline Subscript at(std::vector<int64_t> coefficients, int64_t constant = 0) {
  return {Subscript::Kind::At, {std::move(coefficients), constant}, 1};
}
inline Subscript any() { return {Subscript::Kind::Unknown, {}, 1}; }
inline Subscript all() { return {Subscript::Kind::All, {}, 1}; }

inline Access read(int32_t array, std::vector<Subscript> subscripts) {
  return {array, AccessKind::Read, std::move(subscripts), ""};
}
inline Access write(int32_t array, std::vector<Subscript> subscripts) {
  return {array, AccessKind::Write, std::move(subscripts), ""};
}
inline Access add(int32_t array, std::vector<Subscript> subscripts) {
  return {array, AccessKind::Add, std::move(subscripts), ""};
}

inline Array array(std::string name, std::vector<int64_t> extents) {
  return {std::move(name), std::move(extents)};
}

/// Every key vector of the box.
inline std::vector<std::vector<int64_t>> allEntries(const Loop &loop) {
  std::vector<std::vector<int64_t>> entries{{}};
  for (const Key &key : loop.keys) {
    std::vector<std::vector<int64_t>> longer;
    for (const std::vector<int64_t> &entry : entries)
      for (int64_t value = key.lower; value < key.upper; ++value) {
        longer.push_back(entry);
        longer.back().push_back(value);
      }
    entries = std::move(longer);
  }
  return entries;
}

inline Schedule scheduleOf(const Loop &loop, const Verdict &verdict,
                           int32_t workers, int32_t partsPerWorker) {
  std::vector<std::vector<int64_t>> cuts;
  for (const std::vector<int64_t> &axis : axesOf(loop, verdict)) {
    int64_t least = INT64_MAX, most = INT64_MIN;
    for (const std::vector<int64_t> &entry : allEntries(loop)) {
      least = std::min(least, Affine{axis, 0}.of(entry));
      most = std::max(most, Affine{axis, 0}.of(entry));
    }
    std::vector<int64_t> counts(most - least + 1, 1);
    cuts.push_back(balancedCuts(least, counts, workers * partsPerWorker));
  }
  return makeSchedule(loop, verdict, std::move(cuts), workers);
}

} // namespace baechi::loops

#endif // BAECHI_UNITTESTS_LOOPS_LOOPS_H

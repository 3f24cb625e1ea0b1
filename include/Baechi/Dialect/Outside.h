//===- Outside.h - Positions that arrays do not have ---------- -*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// A step of loops over memory may have a result that says which positions its
/// arrays did not have: a word for each check, 0 where all were inside, and
/// otherwise of the first entry that had one outside.
///
//===----------------------------------------------------------------------===//
#ifndef BAECHI_DIALECT_OUTSIDE_H
#define BAECHI_DIALECT_OUTSIDE_H

#include "llvm/ADT/StringRef.h"
#include <cstdint>

namespace baechi {

/// The result's name, and on it what its words are about: an array of
/// dictionaries with `loc`, the texts `before` and `after` the position, and
/// `lowers` and `sizes` of the keys that count the entries.
inline constexpr llvm::StringLiteral kOutside = "baechi.outside";

/// A word has the distance of the entry's number from kNoEntry, and behind it
/// the position, both as far as they fit.
inline constexpr int64_t kNoEntry = (int64_t(1) << 35) - 1;
inline constexpr int64_t kMostPosition = (int64_t(1) << 27) - 1;
inline constexpr int64_t kPositions = int64_t(1) << 28;

inline int64_t entryOfOutside(int64_t word) {
  return kNoEntry - word / kPositions;
}
inline int64_t positionOfOutside(int64_t word) {
  return word % kPositions - kPositions / 2;
}

} // namespace baechi

#endif // BAECHI_DIALECT_OUTSIDE_H

//===- Verdict.h - What of a loop may run at once --------------*- C++ -*--===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// How far the entries of a loop may be apart in time: exact dependences of
/// accesses that are affine in the keys, and the schemes that they allow. The
/// schemes are those of J. Wei et al., "Automating Dependence-Aware
/// Parallelization of Machine Learning Training on Distributed Shared Memory"
/// (Orion), EuroSys 2019, section 4, made exact, and with any number of keys in
/// place of two; skewed and timed loops are unimodular transformations (M. E.
/// Wolf, M. S. Lam, "A Loop Transformation Theory and an Algorithm to Maximize
/// Parallelism", TPDS 1991).
///
//===----------------------------------------------------------------------===//
#ifndef BAECHI_LOOPS_VERDICT_H
#define BAECHI_LOOPS_VERDICT_H

#include "Baechi/Loops/Loop.h"
#include <optional>

namespace baechi::loops {

/// The distance of two entries in a key; no end: as far as the keys reach.
struct Distance {
  std::optional<int64_t> least, most;
};

/// An access of an entry that a later one depends on, by the keys' order: all
/// their distances lie in the hull \p distances, the first that is not 0 is
/// positive.
struct Dependence {
  int32_t from = 0, to = 0; ///< accesses
  std::vector<Distance> distances;
};

enum class Scheme : uint8_t {
  Independent, ///< no entry depends on another
  Disjoint,    ///< entries that differ in all of `keys` are independent
  Wavefront,   ///< as Disjoint, but blocks follow each other in both `keys`
  Skewed,      ///< entries that differ in the sum `form` are independent
  Timed,       ///< entries that have the sum `form` in common are independent
  Serial,
};

struct Verdict {
  Scheme scheme = Scheme::Serial;
  /// Of Disjoint and Wavefront: the one that is spread over workers first, then
  /// those that rotate. Of Independent: the one that blocks are cut along, or
  /// none, which is the one with the most values.
  std::vector<int32_t> keys;
  std::vector<int64_t> form; ///< coefficients of the keys
  /// Of Timed: two sums in neither of which an entry is before one that it
  /// depends on, so that blocks of both follow each other as a wavefront; or
  /// none.
  std::vector<std::vector<int64_t>> waves;
  /// Arrays of which each block makes sums of its own, which are added up.
  std::vector<int32_t> reduced;
  std::vector<Dependence> dependences;
  /// The two accesses that forbid the next better scheme; that of a serial loop
  /// any scheme.
  std::optional<std::pair<int32_t, int32_t>> obstacle;
};

/// The loop is valid (`check`).
Verdict analyse(const Loop &loop);

/// \p first, what `analyse` says, and the other schemes that a loop has: by
/// other keys, with other ones that stay, with sums of each block's own. One
/// that is independent has a scheme by each key that has several values.
std::vector<Verdict> schemesOf(const Loop &loop, const Verdict &first);

/// How an array is cut along a sum of keys, so that a block with the sum in
/// [lower, upper) writes at positions [factor * lower + constant, factor *
/// upper + constant) of a dimension only, and reads as far as a halo beyond.
struct Home {
  int32_t dimension = 0;
  int64_t factor = 1, constant = 0;
  int64_t below = 0, above = 0; ///< the halo
  /// What is cut is the position in `dimension` and `multiple` times that in
  /// this one, for an array that is written along diagonals.
  std::optional<int32_t> sheared = std::nullopt;
  int64_t multiple = 0;
};
/// \p form: coefficients of the keys.
std::optional<Home> homeOf(const Loop &loop, int32_t array,
                           const std::vector<int64_t> &form);

/// "(0, >=0)".
std::string text(const Dependence &dependence);
/// "2D over i and j".
std::string schemeText(const Loop &loop, const Verdict &verdict);
/// "2 * i + j - 1".
std::string text(const Loop &loop, const Affine &sum);
/// "W[i, :] is written".
std::string text(const Loop &loop, const Access &access);
/// The scheme, and what forbids a better one, with the mend.
std::string explain(const Loop &loop, const Verdict &verdict);

} // namespace baechi::loops

#endif // BAECHI_LOOPS_VERDICT_H

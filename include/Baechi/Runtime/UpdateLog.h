//===- UpdateLog.h - Updates that wait to be sent ---------------*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// What both sides of a parameter store keep for each other: sums of updates
/// that were not sent yet, a row each, with how much each matters. A worker's
/// process has a log of its own updates for the server, the server one a
/// process of what the others changed. Updates add, so a log coalesces what
/// waits, and what is sent is added where it arrives: no value is ever
/// overwritten, and a row's own updates survive whatever arrives.
///
/// Source: Wei et al., "Managed Communication and Consistency for Fast
/// Data-Parallel Iterative Analytics" (Bösen), SoCC 2015, section 3.3 and 4.
///
//===----------------------------------------------------------------------===//
#ifndef BAECHI_RUNTIME_UPDATELOG_H
#define BAECHI_RUNTIME_UPDATELOG_H

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

namespace baechi::store {

/// Which rows go first while a budget lasts.
enum class SendOrder : uint8_t {
  Age,               ///< the row whose first waiting update is oldest
  Random,            ///< drawn again at every round
  Magnitude,         ///< the largest sum of |update|
  RelativeMagnitude, ///< the largest sum of |update| / |value|
  RoundRobin,        ///< from where the last round ended
};

/// Steele, Lea, Flood: "Fast splittable pseudorandom number generators" (2014):
/// the same numbers on every machine.
class SplitMix {
public:
  explicit SplitMix(uint64_t seed) : state(seed) {}
  uint64_t next();
  /// In [0, 1).
  double uniform() { return double(next() >> 11) * 0x1.0p-53; }

private:
  uint64_t state;
};

/// The values of a table's rows, or of some of them.
class RowValues {
public:
  RowValues(size_t rows, size_t width, size_t weighed);

  float *row(size_t at) { return values.data() + at * width; }
  const float *row(size_t at) const { return values.data() + at * width; }

  /// Adds an update. Returns how much it matters for \p order, or infinity or
  /// NaN where the update is not finite; the row is then as it was.
  double add(size_t at, const float *update, SendOrder order);
  /// How much it matters, without adding it.
  double weigh(size_t at, const float *update, SendOrder order) const;
  void set(size_t at, const float *value);

private:
  size_t width;
  /// Elements of a row, from the first, that a row's importance is of.
  size_t weighed;
  std::vector<float> values;
  /// Of |value|: relative magnitudes near 0 are those of a share of the mean.
  double sumOfMagnitudes = 0;
};

/// Sums of updates that wait.
class UpdateLog {
public:
  /// Logs whose rows are chosen from together draw \p ages together.
  UpdateLog(size_t rows, size_t width, std::atomic<uint64_t> &ages);

  void add(size_t at, const float *update, double importance, int64_t clock);
  /// Moves a row's sum to \p sum; returns the clock of its first update.
  int64_t take(size_t at, float *sum);

  /// In no order.
  const std::vector<uint32_t> &waiting() const { return dirty; }
  bool waits(size_t at) const { return places[at] != nowhere; }
  /// The sum that waits; zeros where none does.
  const float *sum(size_t at) const { return sums.data() + at * width; }
  double importance(size_t at) const { return states[at].importance; }
  /// The clock of its first update that waits.
  int64_t clock(size_t at) const { return states[at].clock; }
  /// Grows with the time of its first update that waits.
  uint64_t age(size_t at) const { return states[at].age; }

private:
  static constexpr uint32_t nowhere = std::numeric_limits<uint32_t>::max();
  struct State {
    double importance = 0;
    int64_t clock = 0;
    uint64_t age = 0;
  };
  size_t width;
  std::vector<float> sums;
  std::vector<State> states;
  std::vector<uint32_t> places; ///< in `dirty`
  std::vector<uint32_t> dirty;
  std::atomic<uint64_t> *ages;
};

/// A row that waits.
struct Candidate {
  uint32_t table = 0, row = 0;
  int64_t clock = 0;
  uint64_t age = 0;
  double importance = 0;
  uint32_t bytes = 0;
};

/// Bytes of a message's row beside its numbers: table, row, clock.
inline constexpr uint32_t bytesOfRowHeader = 12;

/// What an order remembers from round to round.
struct Turn {
  explicit Turn(uint64_t seed) : random(seed) {}
  SplitMix random;
  uint64_t last = std::numeric_limits<uint64_t>::max(); ///< place of a row
};

/// Keeps as many of \p rows as \p bytes hold, at least one: the first by
/// \p order (ties: table and row), those with updates from before clock
/// \p must before all others. Where all are kept they stay as they are.
void keepFirst(std::vector<Candidate> &rows, SendOrder order, int64_t must,
               size_t bytes, Turn &turn);

} // namespace baechi::store

#endif // BAECHI_RUNTIME_UPDATELOG_H

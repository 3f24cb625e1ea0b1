//===- Occupancy.h - When devices and links are idle ------------*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef BAECHI_LIB_PLACEMENT_OCCUPANCY_H
#define BAECHI_LIB_PLACEMENT_OCCUPANCY_H

#include "Baechi/Placement/Model/Placement.h"

namespace baechi::placement::study {

/// What occupies something that does one thing at a time.
class Occupancy {
public:
  struct Span {
    int64_t start;
    int64_t end;
    int32_t by; ///< an operator, or a transfer
  };
  struct Gap {
    int64_t start = 0;
    int32_t after = -1; ///< what ends there, -1 when it is idle before
  };

  /// Spans of no length occupy nothing.
  void add(Span span) {
    if (span.start < span.end)
      spans.push_back(span);
  }
  /// To be called after the last `add`.
  void sort();
  /// The earliest time from \p from on at which it is idle for \p length,
  /// without \p ignored.
  Gap firstGap(int64_t from, int64_t length, int32_t ignored = -1) const;

private:
  std::vector<Span> spans;
};

/// The links of a machine during a placement, under its link model.
class LinkOccupancy {
public:
  LinkOccupancy(const Machine &machine, const Placement &placement);
  /// The earliest start of one more transfer, beside those of \p booked (their
  /// sources and spans; all lead to \p to).
  int64_t firstGap(int32_t from, int32_t to, int64_t ready, int64_t length,
                   const std::vector<Occupancy::Span> &booked) const;

private:
  /// What a transfer keeps busy: at most four of `rows`.
  std::vector<size_t> rowsOf(int32_t from, int32_t to) const;
  bool exclude(int32_t to, int32_t fromA, int32_t fromB) const;

  const Machine &machine;
  size_t firstCard = 0; ///< rows of network cards begin here
  std::vector<Occupancy> rows;
};

} // namespace baechi::placement::study

#endif // BAECHI_LIB_PLACEMENT_OCCUPANCY_H

//===- Timetable.h - What the exact search returns --------------*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef BAECHI_LIB_PLACEMENT_EXACT_TIMETABLE_H
#define BAECHI_LIB_PLACEMENT_EXACT_TIMETABLE_H

#include "Exact/Assigned.h"

#include <functional>

namespace baechi::placement::exact {

/// Nodes of all parts of one search, and how many there may be.
struct Effort {
  int64_t nodes = 0;
  int64_t limit = 0;
  std::function<bool()> expired = {}; ///< asked now and then; none: never
  bool spent() const {
    constexpr int64_t often = 1024;
    return nodes >= limit || (expired && nodes % often == 0 && expired());
  }
};

/// A schedule with the source of every transfer.
struct Timetable {
  int64_t makespan = never;
  std::vector<int64_t> start;      ///< per operator
  std::vector<Transfer> transfers; ///< ordered by start

  /// From the ends of operators and of the copies that were made; \p at says
  /// which and from where.
  Timetable() = default;
  Timetable(const Assigned &problem, const Progress &at,
            std::span<const int64_t> end, std::span<const int64_t> copyEnd);
};

} // namespace baechi::placement::exact

#endif // BAECHI_LIB_PLACEMENT_EXACT_TIMETABLE_H

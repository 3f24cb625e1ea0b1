//===- OrderFloor.h - What no order goes under ------------------*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef BAECHI_LIB_PLACEMENT_MEMORY_ORDERFLOOR_H
#define BAECHI_LIB_PLACEMENT_MEMORY_ORDERFLOOR_H

#include "Memory/LeastLevel.h"

namespace baechi::placement::memory {

/// Bytes that every order holds while one of these operators runs.
struct OrderFloor {
  int64_t bytes = 0;
  std::vector<int32_t> nodes; ///< one, or several of which one has them
};

/// About a third of a second.
constexpr int64_t floorEffort = 50'000'000;

/// A lower bound of the peak of every order on one device, each operator once:
/// the least level at which an operator can run, and what it needs. Where it
/// could only run there if another one had needed more before, either of the
/// two comes first, and the lesser of both bounds counts. \p order, the better
/// the more this finds, has all nodes; \p steps bounds the effort.
OrderFloor orderFloor(const Model &model, std::span<const int32_t> order,
                      int64_t steps);

/// The same of several devices of one kind together, whichever has what: a
/// tensor that is needed later is somewhere, or a copy of it.
OrderFloor orderFloorOfAll(const Model &model, std::span<const int32_t> order,
                           int64_t steps);

} // namespace baechi::placement::memory

#endif // BAECHI_LIB_PLACEMENT_MEMORY_ORDERFLOOR_H

//===- Trips.h - Iterations of loops ----------------------------*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef BAECHI_COSTS_TRIPS_H
#define BAECHI_COSTS_TRIPS_H

#include "mlir/Interfaces/LoopLikeInterface.h"

#include <optional>

namespace baechi {

/// How often the body of a loop runs, and the numbers that it counts.
struct Turns {
  int64_t count;
  int64_t first;
  int64_t step;
  /// Of an scf.while, which of the carried values counts.
  unsigned counter = 0;
};

/// Known of an scf.for between constants and of an scf.while that counts by a
/// constant from one to another, as `lax.scan` and `lax.fori_loop` do.
std::optional<Turns> turnsOf(mlir::LoopLikeOpInterface loop);

/// How often the body of \p loop runs, of several dimensions, too; where that
/// is not known, 1.
double tripsOf(mlir::LoopLikeOpInterface loop);

} // namespace baechi

#endif // BAECHI_COSTS_TRIPS_H

//===- Trips.h - Iterations of loops ----------------------------*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef BAECHI_LIB_COSTS_TRIPS_H
#define BAECHI_LIB_COSTS_TRIPS_H

#include "mlir/Interfaces/LoopLikeInterface.h"

namespace baechi {

/// How often the body of \p loop runs: known of loops between constants and of
/// an scf.while that counts by a constant from one to another, as `lax.scan`
/// and `lax.fori_loop` do; else 1.
double tripsOf(mlir::LoopLikeOpInterface loop);

} // namespace baechi

#endif // BAECHI_LIB_COSTS_TRIPS_H

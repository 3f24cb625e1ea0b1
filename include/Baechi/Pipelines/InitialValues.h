//===- InitialValues.h - First values of a step's arguments -*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef BAECHI_PIPELINES_INITIALVALUES_H
#define BAECHI_PIPELINES_INITIALVALUES_H

#include "Baechi/Analysis/Border.h"
#include "Baechi/Target/Npz.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace baechi {

/// The value that \p argument of \p step, whole, starts with, from its
/// `baechi.init` (docs/import.md). Without one: zeros for integers, small
/// numbers for floats, and \p invented is set. Fails with a diagnostic for a
/// type that has no such value.
mlir::FailureOr<Array> initialValue(mlir::func::FuncOp step,
                                    const BorderTensor &argument,
                                    bool &invented);

/// Element \p i of the pseudo-random sequence of \p seed: splitmix64 of
/// seed * 0x9E3779B97F4A7C15 + i (Steele, Lea, Flood, OOPSLA 2014).
uint64_t randomBits(uint64_t seed, uint64_t i);

} // namespace baechi

#endif // BAECHI_PIPELINES_INITIALVALUES_H

//===- Seeds.h - Where cuts of an operation can start -----------*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef BAECHI_LIB_TRANSFORMS_SPLIT_SEEDS_H
#define BAECHI_LIB_TRANSFORMS_SPLIT_SEEDS_H

#include "SplitPlan.h"

namespace baechi::split {

/// A value along whose dimension a cut can start.
struct Seed {
  mlir::Value value;
  CutPosition position;
  int64_t extent;
};

/// For each loop of \p op, or dimension of its result, that can be cut: a value
/// along whose dimension that is. Storage and constants are cut as their
/// readers are.
llvm::SmallVector<Seed> seedsOf(mlir::Operation *op);

} // namespace baechi::split

#endif // BAECHI_LIB_TRANSFORMS_SPLIT_SEEDS_H

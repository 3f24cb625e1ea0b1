//===- FitRemarks.h - What made a step fit, as remarks ----------*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef BAECHI_LIB_TRANSFORMS_FITMEMORY_FITREMARKS_H
#define BAECHI_LIB_TRANSFORMS_FITMEMORY_FITREMARKS_H

#include "Baechi/Placement/Model/Problem.h"
#include "Baechi/Transforms/MemoryFit.h"
#include "Baechi/Transforms/Passes.h"
#include "mlir/IR/BuiltinOps.h"

namespace baechi {

/// Remarks of --baechi-fit-memory, at \p loc.
void remarkFit(mlir::Location loc, const MemoryFit &fit);

/// What waits in a pool so that a step fits.
struct SpillFit {
  struct Spilled {
    std::string name; ///< what makes the tensor
    int64_t fetches = 0;
    int64_t bytes = 0;
  };
  std::vector<Spilled> spilled;
  int64_t peakBefore = 0, peakAfter = 0; ///< of the device that computes
  int64_t floorBytes = 0;
  std::string floorOperator;
  std::string pool;
  int64_t stepNs = 0;
  int64_t outBytes = 0, inBytes = 0, argumentBytes = 0;
};

void remarkSpill(mlir::Location loc, const SpillFit &fit);

/// Remarks that a plan exceeded limits, and what the next one sees.
void remarkPlacedAgain(mlir::Location loc, llvm::ArrayRef<ArenaReport> arenas,
                       const placement::Machine &next);

} // namespace baechi

#endif // BAECHI_LIB_TRANSFORMS_FITMEMORY_FITREMARKS_H

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

/// Remarks that a plan exceeded limits, and what the next one sees.
void remarkPlacedAgain(mlir::Location loc, llvm::ArrayRef<ArenaReport> arenas,
                       const placement::Machine &next);

} // namespace baechi

#endif // BAECHI_LIB_TRANSFORMS_FITMEMORY_FITREMARKS_H

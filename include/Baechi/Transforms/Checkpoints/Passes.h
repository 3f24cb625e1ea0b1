//===- Passes.h - Passes on what a program computes twice -------*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef BAECHI_TRANSFORMS_CHECKPOINTS_PASSES_H
#define BAECHI_TRANSFORMS_CHECKPOINTS_PASSES_H

#include "mlir/IR/BuiltinOps.h"
#include "mlir/Pass/Pass.h"
#include <vector>

namespace baechi {

#define GEN_PASS_DECL
#include "Baechi/Transforms/Checkpoints/Passes.h.inc"

#define GEN_PASS_REGISTRATION
#include "Baechi/Transforms/Checkpoints/Passes.h.inc"

/// What a program's checkpoints computed a second time.
struct UndoneCheckpoints {
  /// What one checkpoint did, or several, one within the other.
  struct Region {
    unsigned number = 0;   ///< in the program's order
    int64_t operators = 0; ///< that run once now
    int64_t bytes = 0;     ///< of their results, which are held instead
    int64_t ns = 0;        ///< that this saves, by the default roofline
  };
  std::vector<Region> regions;

  int64_t operators() const;
  int64_t bytes() const;
};

/// Whether the program says of any operation that it computes something again.
bool hasCheckpoints(mlir::ModuleOp module);

/// --baechi-undo-checkpoints that also fills in \p undone; \p keep: regions by
/// their numbers.
std::unique_ptr<mlir::Pass>
createUndoCheckpoints(UndoneCheckpoints *undone,
                      llvm::ArrayRef<unsigned> keep = {});

} // namespace baechi

#endif // BAECHI_TRANSFORMS_CHECKPOINTS_PASSES_H

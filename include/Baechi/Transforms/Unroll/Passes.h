//===- Passes.h - Passes that write loops out -------------------*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef BAECHI_TRANSFORMS_UNROLL_PASSES_H
#define BAECHI_TRANSFORMS_UNROLL_PASSES_H

#include "mlir/IR/BuiltinOps.h"
#include "mlir/Pass/Pass.h"
#include <string>
#include <vector>

namespace baechi {

#define GEN_PASS_DECL
#include "Baechi/Transforms/Unroll/Passes.h.inc"

#define GEN_PASS_REGISTRATION
#include "Baechi/Transforms/Unroll/Passes.h.inc"

/// What became of a step's loops.
struct UnrolledLoops {
  struct Loop {
    std::string name; ///< or place
    int64_t turns = 0;
    int64_t operators = 0; ///< that it has become
  };
  struct Whole {
    std::string name;
    std::string why;
    /// It has many turns, or nobody knows how many.
    bool isForTurns = false;
  };
  std::vector<Loop> unrolled; ///< in the order of the step
  std::vector<Whole> whole;

  int64_t operators() const;
};

/// Whether the step has loops that could be written out.
bool hasLoops(mlir::ModuleOp module);

/// --baechi-unroll-loops that also fills in \p unrolled.
std::unique_ptr<mlir::Pass> createUnrollLoops(const UnrollLoopsOptions &options,
                                              UnrolledLoops *unrolled);

} // namespace baechi

#endif // BAECHI_TRANSFORMS_UNROLL_PASSES_H

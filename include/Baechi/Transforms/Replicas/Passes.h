//===- Passes.h - Passes on replicated steps --------------------*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef BAECHI_TRANSFORMS_REPLICAS_PASSES_H
#define BAECHI_TRANSFORMS_REPLICAS_PASSES_H

#include "Baechi/Transforms/SplitReport.h"
#include "mlir/Pass/Pass.h"

namespace baechi {

#define GEN_PASS_DECL
#include "Baechi/Transforms/Replicas/Passes.h.inc"

#define GEN_PASS_REGISTRATION
#include "Baechi/Transforms/Replicas/Passes.h.inc"

/// --baechi-replicate that also fills in \p report, unless it is null.
std::unique_ptr<mlir::Pass> createReplicate(const ReplicateOptions &options,
                                            SplitReport *report);

/// Why a step of so many replicas has no use for a machine's devices; empty
/// where it has.
std::string whyTooManyDevices(int64_t replicas, int64_t devices);

} // namespace baechi

#endif // BAECHI_TRANSFORMS_REPLICAS_PASSES_H

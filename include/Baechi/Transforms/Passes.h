//===- Passes.h - Passes on programs of operators -*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef BAECHI_TRANSFORMS_PASSES_H
#define BAECHI_TRANSFORMS_PASSES_H

#include "Baechi/Dialect/Baechi.h"
#include "mlir/Pass/Pass.h"

namespace baechi {

struct Profile;

#define GEN_PASS_DECL
#include "Baechi/Transforms/Passes.h.inc"

#define GEN_PASS_REGISTRATION
#include "Baechi/Transforms/Passes.h.inc"

/// --baechi-annotate-costs with a profile in memory; null: the roofline.
std::unique_ptr<mlir::Pass> createAnnotateCosts(const Profile *profile);

} // namespace baechi

#endif // BAECHI_TRANSFORMS_PASSES_H

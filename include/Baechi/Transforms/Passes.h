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
namespace placement {
class LpSolver;
} // namespace placement

#define GEN_PASS_DECL
#include "Baechi/Transforms/Passes.h.inc"

#define GEN_PASS_REGISTRATION
#include "Baechi/Transforms/Passes.h.inc"

/// --baechi-annotate-costs with a profile in memory; null: the roofline.
std::unique_ptr<mlir::Pass> createAnnotateCosts(const Profile *profile);

/// The solver of m-SCT's linear program that --baechi-place uses from now on;
/// null: none, favourite children are then chosen greedily. The passes link no
/// solver themselves (GLPK is under the GPL); a program sets it once, before it
/// runs passes, and keeps it alive.
void setLpSolver(const placement::LpSolver *solver);

} // namespace baechi

#endif // BAECHI_TRANSFORMS_PASSES_H

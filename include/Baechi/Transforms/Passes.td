//===- Passes.td - Passes on programs of operators -*- tablegen -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef BAECHI_TRANSFORMS_PASSES
#define BAECHI_TRANSFORMS_PASSES

include "Baechi/Transforms/FormPasses.td"
include "Baechi/Transforms/PlacePasses.td"
include "Baechi/Transforms/PlanPasses.td"

#endif // BAECHI_TRANSFORMS_PASSES

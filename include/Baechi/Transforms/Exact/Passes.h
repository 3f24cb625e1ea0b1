//===- Passes.h - Passes on the order of sums -------------------*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef BAECHI_TRANSFORMS_EXACT_PASSES_H
#define BAECHI_TRANSFORMS_EXACT_PASSES_H

#include "mlir/Pass/Pass.h"

namespace baechi {

#define GEN_PASS_DECL
#include "Baechi/Transforms/Exact/Passes.h.inc"

#define GEN_PASS_REGISTRATION
#include "Baechi/Transforms/Exact/Passes.h.inc"

} // namespace baechi

#endif // BAECHI_TRANSFORMS_EXACT_PASSES_H

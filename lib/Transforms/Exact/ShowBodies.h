//===- ShowBodies.h - Bodies of structured operations -----------*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef BAECHI_LIB_TRANSFORMS_EXACT_SHOWBODIES_H
#define BAECHI_LIB_TRANSFORMS_EXACT_SHOWBODIES_H

#include "mlir/IR/Operation.h"

namespace baechi {

/// Makes reductions and additions below \p root that have a name of their own
/// linalg.generic: what has no body that is shown would lose its flags when it
/// is printed.
void showBodies(mlir::Operation *root);

} // namespace baechi

#endif // BAECHI_LIB_TRANSFORMS_EXACT_SHOWBODIES_H

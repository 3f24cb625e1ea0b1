//===- Bounds.h - Positions that arrays do not have ------------*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef BAECHI_LIB_TRANSFORMS_LOOPS_BOUNDS_H
#define BAECHI_LIB_TRANSFORMS_LOOPS_BOUNDS_H

#include "LoopModel.h"

namespace baechi {

/// An error at an access of \p op that is outside of its array for some of the
/// keys, whatever the data are.
llvm::LogicalResult checkBounds(ForeachOp op, const LoopModel &model);

} // namespace baechi

#endif // BAECHI_LIB_TRANSFORMS_LOOPS_BOUNDS_H

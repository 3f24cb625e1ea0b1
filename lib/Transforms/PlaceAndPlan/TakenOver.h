//===- TakenOver.h - Results in their operands' places ----------*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef BAECHI_LIB_TRANSFORMS_PLACEANDPLAN_TAKENOVER_H
#define BAECHI_LIB_TRANSFORMS_PLACEANDPLAN_TAKENOVER_H

#include "mlir/Interfaces/FunctionInterfaces.h"

namespace baechi {

/// Most bytes that results of one operator of \p step may take over from
/// operands that are no arguments, or lie in as parts of what it puts together,
/// held as the arena does: so much more than a plan may need counts who gives
/// each result room of its own.
int64_t bytesTakenOver(mlir::FunctionOpInterface step);

} // namespace baechi

#endif // BAECHI_LIB_TRANSFORMS_PLACEANDPLAN_TAKENOVER_H

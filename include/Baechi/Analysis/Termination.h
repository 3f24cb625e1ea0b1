//===- Termination.h - Whether a step surely ends ---------------*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef BAECHI_ANALYSIS_TERMINATION_H
#define BAECHI_ANALYSIS_TERMINATION_H

#include "mlir/Interfaces/FunctionInterfaces.h"

namespace baechi {

/// Whether a call of \p function ends whatever it is given, in a time that does
/// not depend on that: its loops, and those of what it calls, count up to a
/// bound that no data tell, nothing calls itself, and all that is called is
/// defined here. False where that is not known.
bool surelyEnds(mlir::FunctionOpInterface function);

} // namespace baechi

#endif // BAECHI_ANALYSIS_TERMINATION_H

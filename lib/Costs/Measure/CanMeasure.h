//===- CanMeasure.h - Kernels that run on any operands -*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef BAECHI_LIB_COSTS_MEASURE_CANMEASURE_H
#define BAECHI_LIB_COSTS_MEASURE_CANMEASURE_H

#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace baechi {

/// Why a kernel must not run on invented operands: it might crash, never end or
/// exhaust the memory. Empty when it can be measured.
std::string whyNotMeasured(mlir::func::FuncOp kernel);

} // namespace baechi

#endif // BAECHI_LIB_COSTS_MEASURE_CANMEASURE_H

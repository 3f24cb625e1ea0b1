//===- DataAccesses.h - Accesses that operands direct -*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef BAECHI_LIB_COSTS_MEASURE_DATAACCESSES_H
#define BAECHI_LIB_COSTS_MEASURE_DATAACCESSES_H

#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace baechi {

/// The accesses of a kernel whose position depends on its operands' contents.
struct DataAccesses {
  /// The smallest number of positions that one of them may take; none if there
  /// are no such accesses.
  std::optional<int64_t> positions;
  /// True when a position is more than an integer that was loaded: invented
  /// operands may then lead out of the tensor.
  bool computed = false;
};

DataAccesses findDataAccesses(mlir::func::FuncOp kernel);

} // namespace baechi

#endif // BAECHI_LIB_COSTS_MEASURE_DATAACCESSES_H

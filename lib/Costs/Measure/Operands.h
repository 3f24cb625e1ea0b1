//===- Operands.h - Buffers to measure kernels on -*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef BAECHI_LIB_COSTS_MEASURE_OPERANDS_H
#define BAECHI_LIB_COSTS_MEASURE_OPERANDS_H

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include <cstdlib>
#include <memory>

namespace baechi {

/// Filled buffers for the arguments, results and scratch of a kernel: several
/// sets of them, so that who goes round the sets does not find them in the
/// cache.
class Operands {
public:
  Operands(mlir::func::FuncOp kernel, int64_t scratchBytes);

  /// The bytes of one set, without scratch.
  static int64_t bytesOfSet(mlir::func::FuncOp kernel);

  /// False when there was no memory for them.
  bool allocated() const { return memory != nullptr; }
  size_t sets() const { return pointers.size(); }
  /// The arguments, the results and the scratch of one set, in this order.
  void **set(size_t index) { return pointers[index].data(); }

private:
  struct Free {
    void operator()(char *pointer) const { std::free(pointer); }
  };
  std::unique_ptr<char, Free> memory;
  llvm::SmallVector<llvm::SmallVector<void *, 8>> pointers;
};

} // namespace baechi

#endif // BAECHI_LIB_COSTS_MEASURE_OPERANDS_H

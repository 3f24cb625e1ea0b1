//===- LendableArguments.h - What is read where callers have it -*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef BAECHI_LIB_CONVERSION_DEVICES_LENDABLEARGUMENTS_H
#define BAECHI_LIB_CONVERSION_DEVICES_LENDABLEARGUMENTS_H

#include "Baechi/Analysis/Border.h"
#include "Baechi/Analysis/DeviceProgram.h"
#include "llvm/ADT/DenseMap.h"
#include <optional>

namespace baechi {

/// The arguments that host devices may read where the caller of a step has
/// them, in place of a copy in their arenas. Each is whole, of one device,
/// worth it by its size, and nothing in the step is written to its place or
/// read from there by others: it is not updated, no result of an operator or of
/// the step shares it, and only host devices receive it.
class LendableArguments {
public:
  /// \p arguments: those of the function \p whole, as callers have them.
  LendableArguments(mlir::func::FuncOp whole,
                    llvm::ArrayRef<BorderTensor> arguments,
                    llvm::ArrayRef<DeviceProgram> programs);

  /// Whether the argument at that position of the function is one.
  bool contains(int64_t position) const { return numbers.contains(position); }

  /// The number, as callers have it, of the argument that \p root is of a
  /// device's step, where it is one.
  std::optional<unsigned> numberOf(mlir::func::FuncOp step,
                                   mlir::Value root) const;

private:
  llvm::DenseMap<int64_t, unsigned> numbers; ///< by their positions
};

} // namespace baechi

#endif // BAECHI_LIB_CONVERSION_DEVICES_LENDABLEARGUMENTS_H

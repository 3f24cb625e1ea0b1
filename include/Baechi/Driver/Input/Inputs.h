//===- Inputs.h - What a run starts from and is compared with -*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef BAECHI_DRIVER_INPUT_INPUTS_H
#define BAECHI_DRIVER_INPUT_INPUTS_H

#include "Baechi/Analysis/Border.h"
#include "Baechi/Target/Npz.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "llvm/ADT/DenseSet.h"
#include "llvm/Support/Error.h"

namespace baechi {

/// First values of a step's arguments, whole: those of an archive, by
/// `baechi.name` or as argN, the others from `baechi.init`.
class FirstValues {
public:
  /// Reads the archive \p path, unless empty. An array of another shape or type
  /// than its argument, or under a name that no argument has, is an error. What
  /// the step computes no next value of may be so many times as large along its
  /// first dimension as there are \p replicas, which then have a part each.
  static llvm::Expected<FirstValues>
  read(mlir::func::FuncOp step, const std::string &path, int64_t replicas = 1);

  /// The value of argument \p index; made now and not kept, as it may be large.
  llvm::Expected<Array> take(size_t index);
  /// The same for one of the replicas, as often as is asked for.
  llvm::Expected<Array> of(int64_t replica, size_t index);

  /// Arguments taken so far that had neither an array nor a `baechi.init`.
  size_t invented() const { return numInvented; }

private:
  FirstValues(mlir::func::FuncOp step, llvm::SmallVector<BorderTensor> all)
      : step(step), arguments(std::move(all)) {}

  mlir::func::FuncOp step;
  llvm::SmallVector<BorderTensor> arguments;
  std::map<size_t, Array> given;
  llvm::SmallDenseSet<size_t> cut; ///< those with a part for each replica
  int64_t replicas = 1;
  size_t numInvented = 0;
};

/// The losses, one or more, of a reference file (docs/import.md).
llvm::Expected<std::vector<double>> readReference(const std::string &path);

} // namespace baechi

#endif // BAECHI_DRIVER_INPUT_INPUTS_H

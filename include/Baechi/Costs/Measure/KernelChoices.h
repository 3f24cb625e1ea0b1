//===- KernelChoices.h - The code that kernels stay with --------*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Implementations of a product differ in the last bits of its results, and
/// what is measured says which one is used. So that a program's results are the
/// same in each process, whatever others add to the profile meanwhile, the
/// profile keeps what was chosen for it first.
///
//===----------------------------------------------------------------------===//
#ifndef BAECHI_COSTS_MEASURE_KERNELCHOICES_H
#define BAECHI_COSTS_MEASURE_KERNELCHOICES_H

#include "Baechi/Costs/Profile.h"
#include "mlir/IR/BuiltinOps.h"

namespace baechi {

/// The host kernels of a module that can be had in several implementations and
/// name none yet.
class KernelChoices {
public:
  /// \p module: null for none.
  explicit KernelChoices(mlir::ModuleOp module);

  bool empty() const { return kernels.empty(); }
  /// Of the program that has these kernels.
  llvm::StringRef program() const { return name; }
  /// What they are computed by now.
  ProgramChoice chosen() const;
  /// Whether \p choice names code for each of them that there is.
  bool canHave(const ProgramChoice &choice) const;
  /// Makes them name the code of \p choice that \p profile has rows of, or
  /// which they have by default. Costs, and the scratch, are to be annotated
  /// after it.
  void apply(const ProgramChoice &choice, const Profile &profile);

private:
  struct Kernel {
    mlir::func::FuncOp function;
    std::string hash;
    mlir::Attribute scratch; ///< by default; null: it needs none, or not known
  };
  llvm::SmallVector<Kernel> kernels;
  std::string name;
};

} // namespace baechi

#endif // BAECHI_COSTS_MEASURE_KERNELCHOICES_H

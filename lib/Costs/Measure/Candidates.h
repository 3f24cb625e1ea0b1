//===- Candidates.h - Code of kernels that is timed alone -------*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef BAECHI_LIB_COSTS_MEASURE_CANDIDATES_H
#define BAECHI_LIB_COSTS_MEASURE_CANDIDATES_H

#include "Baechi/Conversion/HostJit/HostJit.h"
#include "Baechi/Costs/Measure/KernelCosts.h"

namespace baechi {

/// One row to be: a kernel with an implementation, and its code.
struct Candidate {
  mlir::func::FuncOp kernel;
  std::string hash, implementation;
  int64_t scratchBytes = 0;
  /// Its code, called with an array of pointers.
  void *code = nullptr;
};

/// What the candidates' code lives in.
using CandidateCode = std::vector<std::unique_ptr<HostJit>>;

/// Gives each of \p candidates its code. What a store lacks is added to it
/// under the names that a compilation looks for, so that the implementation
/// that is chosen is not compiled again. Fails after a diagnostic.
mlir::FailureOr<CandidateCode>
compileCandidates(mlir::ModuleOp module,
                  llvm::MutableArrayRef<Candidate> candidates,
                  const MeasureOptions &options);

} // namespace baechi

#endif // BAECHI_LIB_COSTS_MEASURE_CANDIDATES_H

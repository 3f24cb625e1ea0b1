//===- Report.h - What a run tells -*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef BAECHI_DRIVER_REPORT_REPORT_H
#define BAECHI_DRIVER_REPORT_REPORT_H

#include "Baechi/Driver/Execution/Execution.h"
#include "Baechi/Driver/Report/PieceReport.h"
#include "Baechi/Driver/Report/StepRoofline.h"
#include "llvm/Support/JSON.h"
#include "llvm/Support/raw_ostream.h"
#include <optional>

namespace baechi {

/// Losses of the run against the importer's reference.
struct ReferenceComparison {
  size_t steps = 0;
  double worst = 0; ///< largest relative difference
  bool agrees() const { return worst <= limit; }
  static constexpr double limit = 1e-4;
};

/// Where the costs of a model's kernels come from.
struct KernelCostCounts {
  size_t rowsMeasured = 0; ///< of the profile, now
  size_t measured = 0;     ///< kernels with a measured time
  size_t estimated = 0;    ///< the others, by the roofline
  size_t disturbed = 0;    ///< rows that other work disturbed

  llvm::json::Object toJson() const;
};

/// Each simulated link of a program, in words that say that it is one; none of
/// a program that runs over real ones alone.
std::vector<std::string> simulatedLinks(const runtime::Program &program);

struct RunReport {
  std::string model, machine, target, costs;
  std::string cudaMath; ///< of products on GPUs; empty: there are none
  /// Kernels of GPUs that cuDNN may compute, and those of them that it does.
  size_t cudaConvolutions = 0, cudnnConvolutions = 0;
  std::string placer; ///< as asked
  std::string objective;
  size_t operatorsBefore = 0, operators = 0, kernels = 0;
  KernelCostCounts kernelCosts;
  size_t kernelsFromStore = 0; ///< not compiled in this run
  double formSeconds = 0, profileSeconds = 0, kernelSeconds = 0;
  CompiledProgram compiled;
  std::optional<PieceReport> pieces;    ///< where cutting was asked for
  std::optional<StepRoofline> roofline; ///< where costs are measured
  runtime::Program program;
  std::vector<int64_t> residentBytes; ///< a device each
  Measurement measured;
  int64_t overlapped = 0; ///< steps of which `measured` has the average
  /// Processors' work that the machine did for others while steps ran, where
  /// that left too few of them.
  std::optional<double> othersWork;
  /// Of the fastest counted step.
  runtime::Timeline timeline;
  std::optional<Measurement> single;
  double singlePredictedNs = 0;
  std::string singleRefused; ///< why there is no single-device run
  std::string difference;    ///< empty: outputs agree
  std::vector<double> losses;
  std::string lossName;
  std::optional<ReferenceComparison> reference;

  /// The step by the runtime's rules; where it was not simulated, by the
  /// placers'.
  double predictedNs() const;

  /// The operators that took the most time more or less than planned, largest
  /// difference first: their device and position on it.
  std::vector<std::pair<size_t, size_t>> furthestOperators(size_t most) const;

  /// Results equal the single device's and losses the reference's, as far as
  /// they were compared.
  bool isRight() const {
    return difference.empty() && (!reference || reference->agrees());
  }

  void print(llvm::raw_ostream &os) const;
  llvm::json::Object toJson() const;
};

} // namespace baechi

#endif // BAECHI_DRIVER_REPORT_REPORT_H

//===- Roofline.h - Costs of operators by the roofline model -*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef BAECHI_COSTS_ROOFLINE_H
#define BAECHI_COSTS_ROOFLINE_H

#include "Baechi/Dialect/Baechi.h"
#include "Baechi/Interfaces/OperatorInterfaces.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace baechi {

/// The work of one operation: what it states itself (CostOpInterface), else
/// what is counted, of a call in the called kernel's body.
///
/// - Operations: of a linalg operation its loops' product times the arithmetic
///   of its body (an FMA is two, constants, casts and computations of positions
///   are none); of a loop its trips times its body; of alternatives the most.
///   An operation of an unknown dialect does one an element of its results.
/// - Bytes: the elements that the indexing maps touch, once each, of what is
///   read and of what is written; a kernel's results are written as a whole,
///   but for those that are arguments changed in place (inPlaceChangeOf).
Work workOf(mlir::Operation *op);
/// The same, of a call whose kernel has been looked up, or of another operator.
Work workOf(mlir::Operation *op, mlir::func::FuncOp kernel);
/// The same of a call of \p kernel.
Work workOfKernel(mlir::func::FuncOp kernel);

/// A device kind's peaks.
struct Roofline {
  std::string kind;
  double flopsPerSecond = 0;
  double bytesPerSecond = 0;
  int64_t launchNs = 0;

  /// launch + max(flops / peak, bytes / bandwidth), ns (Williams et al.,
  /// "Roofline", CACM 2009).
  int64_t timeNs(const Work &work) const;
};

/// Modest figures for one core (`host`) and one GPU (`cuda`).
llvm::SmallVector<Roofline> defaultRooflines();

/// One measured execution.
struct RooflineSample {
  Work work;
  double ns = 0;
};

/// A roofline that follows from measurements.
struct RooflineFit {
  Roofline roofline;
  /// Of |predicted - measured| / measured over the samples.
  double medianError = 0;
};

/// The roofline of least relative error (of the logarithms, summed). Which
/// samples are bound by memory is a threshold of flops over bytes; for each
/// threshold the rest is a non-negative least-squares problem in three
/// unknowns. A peak that no sample is bound by is \p assumed's. Nullopt with
/// fewer than four samples that take time.
std::optional<RooflineFit> fitRoofline(llvm::ArrayRef<RooflineSample> samples,
                                       const Roofline &assumed);

/// Parses "KIND:GFLOPS:GBS:LAUNCH_NS[,…]"; on failure \p error says why.
std::optional<llvm::SmallVector<Roofline>> parseRooflines(llvm::StringRef text,
                                                          std::string &error);

} // namespace baechi

#endif // BAECHI_COSTS_ROOFLINE_H

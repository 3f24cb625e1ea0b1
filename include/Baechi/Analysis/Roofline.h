//===- Roofline.h - Costs of operators by the roofline model -*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef BAECHI_ANALYSIS_ROOFLINE_H
#define BAECHI_ANALYSIS_ROOFLINE_H

#include "Baechi/Dialect/Baechi.h"
#include "Baechi/Interfaces/OperatorInterfaces.h"

namespace baechi {

/// The work of one operation: what it states itself (CostOpInterface), else of
/// the called kernel's body for a call. A linalg operation does its loops'
/// product times the arithmetic of its body.
Work workOf(mlir::Operation *op);

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

/// Parses "KIND:GFLOPS:GBS:LAUNCH_NS[,…]"; on failure \p error says why.
std::optional<llvm::SmallVector<Roofline>> parseRooflines(llvm::StringRef text,
                                                          std::string &error);

} // namespace baechi

#endif // BAECHI_ANALYSIS_ROOFLINE_H

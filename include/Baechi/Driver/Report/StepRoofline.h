//===- StepRoofline.h - What a step takes at least here -*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef BAECHI_DRIVER_REPORT_STEPROOFLINE_H
#define BAECHI_DRIVER_REPORT_STEPROOFLINE_H

#include "Baechi/Costs/Profile.h"
#include "Baechi/Interfaces/OperatorInterfaces.h"
#include "mlir/IR/BuiltinOps.h"
#include "llvm/Support/JSON.h"

namespace baechi {

/// Measures what a core reaches, by its own processor time: products of 512 x
/// 512 matrices by the libraries that kernels call, and copies of 64 MiB. About
/// 0.1 s. Nullopt where no library is there.
std::optional<HostPeaks> measureHostPeaks();

/// The yardstick of a step on host devices: the sum over its operators of what
/// arithmetic at the peak, or reading and writing each tensor once at the
/// bandwidth takes, whichever is longer (Williams et al., "Roofline", CACM
/// 2009). No bound: what lies in a cache is read faster than from memory.
struct StepRoofline {
  double ns = 0; ///< of one core
  Work work;
  HostPeaks peaks;
  int64_t cores = 1; ///< that compute the step

  /// How much of it a step that took so long reaches: 1 is all that the cores
  /// could, together.
  double reachedBy(double stepNs) const {
    return stepNs > 0 ? ns / (stepNs * static_cast<double>(cores)) : 0;
  }
  /// For persons: "52 % of the roofline, …".
  std::string textOf(double stepNs) const;
  llvm::json::Object toJson() const;
};

/// The roofline of the step of \p module, whose kernels are formed.
StepRoofline stepRoofline(mlir::ModuleOp module, const HostPeaks &peaks,
                          int64_t cores);

} // namespace baechi

#endif // BAECHI_DRIVER_REPORT_STEPROOFLINE_H

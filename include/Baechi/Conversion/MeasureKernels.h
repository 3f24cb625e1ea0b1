//===- MeasureKernels.h - Times of kernels' host code -*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef BAECHI_CONVERSION_MEASUREKERNELS_H
#define BAECHI_CONVERSION_MEASUREKERNELS_H

#include "Baechi/Analysis/Profile.h"
#include "mlir/IR/BuiltinOps.h"
#include <functional>

namespace baechi {

struct MeasureOptions {
  /// A row is measured for as long and as often as this, at least; a third of
  /// it where another implementation turns out to be much faster.
  double secondsPerRow = 0.03;
  int64_t samplesPerRow = 9;
  /// No row takes many times longer than this: slow kernels get fewer samples.
  double mostSecondsPerRow = 0.3;
  /// When all rows together took this long, those left get the fewest samples.
  double secondsInAll = 120;
  /// Warn of each kernel that gets no row, with the reason.
  bool warnOfUnmeasured = true;
  /// Asked often, on any thread: once it says true, the call ends soon with an
  /// error and adds no row. Empty: nobody stops it.
  std::function<bool()> stopped;
};

/// Measures every implementation of every kernel of `module` that `profile` has
/// no row for on device kind "host", and adds the rows. The kernels run on one
/// thread that is bound to a processor, on buffers that come from beyond the
/// second-level cache, as they mostly do within a step. Floating-point operands
/// are random, integers are indices that the kernel's gathers accept.
///
/// Kernels that such operands might crash or keep busy for ever (divisions of
/// integers, computed positions, scf.while), and those too large for the
/// memory, get no row but a warning. Rows of this kind that another host or
/// compiler made (Profile::target, Profile::compiler) are dropped, with a
/// warning.
///
/// Rows are measured in several rounds, so that those that are compared with
/// each other meet the same disturbances. `progress` is told how much is done,
/// as a number of rows, often and at the end; it is called on the thread that
/// measures. Rows of gemmLibraries() are left out, with a warning, where the
/// library is missing.
mlir::LogicalResult measureKernels(
    mlir::ModuleOp module, Profile &profile, const MeasureOptions &options = {},
    llvm::function_ref<void(size_t done, size_t total)> progress =
        [](size_t, size_t) {});

} // namespace baechi

#endif // BAECHI_CONVERSION_MEASUREKERNELS_H

//===- Calibrate.h - Fit a machine to measured steps -*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef BAECHI_COSTS_MEASURE_CALIBRATE_H
#define BAECHI_COSTS_MEASURE_CALIBRATE_H

#include "Baechi/Placement/Model/Problem.h"
#include "Baechi/Runtime/Program.h"
#include "Baechi/Runtime/Timeline.h"
#include "llvm/ADT/STLFunctionalExtras.h"
#include "llvm/ADT/Twine.h"

namespace baechi {

/// Steps of a program, as they ran.
struct MeasuredSteps {
  const runtime::Program &program;
  const runtime::Timeline &fastest;
  std::vector<double> busyNs; ///< a device each, mean over steps
  double medianNs = 0;        ///< of a step
};

/// Fits \p machine to what steps of a model took on its devices and on one: how
/// much longer operators take while all devices are busy, and the links, where
/// the step's copies tell them. Says what it found, a line each.
void calibrate(placement::Machine &machine, const MeasuredSteps &placed,
               const MeasuredSteps &single,
               llvm::function_ref<void(const llvm::Twine &line)> tell);

} // namespace baechi

#endif // BAECHI_COSTS_MEASURE_CALIBRATE_H

//===- Calibrate.h - Fit a machine to measured steps -*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef BAECHI_DRIVER_CALIBRATE_H
#define BAECHI_DRIVER_CALIBRATE_H

#include "Baechi/Driver/Execution.h"
#include "Baechi/Driver/Listener.h"
#include "Baechi/Placement/Problem.h"

namespace baechi {

/// Fits \p machine to what steps of a model took on its devices and on one: how
/// much longer operators take while all devices are busy, and the links, where
/// the step's copies tell them. Says what it found.
void calibrate(placement::Machine &machine, const Execution &placed,
               const Execution &single, Listener &listener);

} // namespace baechi

#endif // BAECHI_DRIVER_CALIBRATE_H

//===- LoadBound.h - Certificates of the largest load -----------*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef BAECHI_LIB_PLACEMENT_BOUNDS_LOADBOUND_H
#define BAECHI_LIB_PLACEMENT_BOUNDS_LOADBOUND_H

#include "Bounds/Bounds.h"

namespace baechi::placement::bounds {

/// All work over the devices, each as fast as it is: no device can do less than
/// this, for the largest load and the makespan alike. In nanoseconds.
int64_t workBySpeed(const Model &model);

/// A bound of the largest load that is at least \p known.
Bound raiseMaxLoadBound(const Model &model, Bound known);

} // namespace baechi::placement::bounds

#endif // BAECHI_LIB_PLACEMENT_BOUNDS_LOADBOUND_H

//===- Bounds.h - Certificates ----------------------------------*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef BAECHI_LIB_PLACEMENT_BOUNDS_H
#define BAECHI_LIB_PLACEMENT_BOUNDS_H

#include "Model/Model.h"

#include <string>

namespace baechi::placement::bounds {

/// A value that no placement can beat, and the argument it comes from.
struct Bound {
  int64_t value = 0;
  std::string name = "nothing to do";
};

/// Of the makespan: the critical path without communication; work over
/// devices, also of the operators that a set of devices alone can run; the
/// largest colocation unit; and for operators on the critical path, both kinds
/// for what must come before them plus both for what must come after; what must
/// be done or moved between them (Segments.h): not where the bound is to be
/// \p quick, as that alone takes longer than some placers.
Bound makespanBound(const Model &model, bool quick = false);

/// Of the largest load: work over devices, each as fast as it is; the largest
/// unit; what does not go into the memories; transfers that cannot be saved.
Bound maxLoadBound(const Model &model);

} // namespace baechi::placement::bounds

#endif // BAECHI_LIB_PLACEMENT_BOUNDS_H

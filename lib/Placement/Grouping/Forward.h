//===- Forward.h - Backward operators follow forward ones -------*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef BAECHI_LIB_PLACEMENT_FORWARD_H
#define BAECHI_LIB_PLACEMENT_FORWARD_H

#include "Grouping/Coarsen.h"

namespace baechi::placement::grouping {

/// Forward-only placement (Jeon et al., SoCC 2020, section 3.3): the unit of a
/// backward operator joins that of its forward operator, so that only forward
/// operators are placed. Two units stay apart when no device may run both, or
/// when together they would hold more than the largest memory or do more than
/// a device's share of the work. Returns the number of backward operators that
/// are not with their forward operator then.
int32_t followForward(const Problem &problem, const Model &model,
                      Coarsening &coarsening);

} // namespace baechi::placement::grouping

#endif // BAECHI_LIB_PLACEMENT_FORWARD_H

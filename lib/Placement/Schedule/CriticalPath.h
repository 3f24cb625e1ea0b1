//===- CriticalPath.h - What a makespan hangs on ----------------*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef BAECHI_LIB_PLACEMENT_CRITICALPATH_H
#define BAECHI_LIB_PLACEMENT_CRITICALPATH_H

#include "Schedule/Schedule.h"

namespace baechi::placement {

/// A chain of nodes and transfers without gaps that ends with the step.
struct CriticalPath {
  std::vector<int32_t> nodes;
  std::vector<ScheduledTransfer> transfers;
};

CriticalPath criticalPath(const Model &model, const Assignment &device,
                          const Schedule &schedule);

} // namespace baechi::placement

#endif // BAECHI_LIB_PLACEMENT_CRITICALPATH_H

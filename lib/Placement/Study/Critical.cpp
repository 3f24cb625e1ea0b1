//===- Critical.cpp - What a placement's makespan hangs on ------*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Baechi/Placement/Study/Critical.h"
#include "Schedule/CriticalPath.h"

#include <set>

using namespace baechi::placement;

Critical baechi::placement::criticalParts(const Problem &problem,
                                          const Placement &placement) {
  Model model(problem);
  Schedule schedule;
  schedule.makespan = placement.makespanNs;
  schedule.start = placement.startNs;
  for (const Transfer &t : placement.transfers)
    schedule.transfers.push_back(
        {model.firstTensor[t.op] + t.output, t.from, t.to, t.startNs, t.endNs});
  CriticalPath path = criticalPath(model, placement.device, schedule);
  Critical critical;
  critical.op.assign(model.numNodes, 0);
  for (int32_t i : path.nodes)
    critical.op[i] = 1;
  // A tensor is moved to a device once at most.
  std::set<std::pair<int32_t, int32_t>> moved;
  for (const ScheduledTransfer &t : path.transfers)
    moved.emplace(t.tensor, t.to);
  for (const ScheduledTransfer &t : schedule.transfers)
    critical.transfer.push_back(moved.contains({t.tensor, t.to}));
  return critical;
}

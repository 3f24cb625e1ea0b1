//===- FitRemarks.cpp - What made a step fit, as remarks ------------------===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "FitRemarks.h"
#include "mlir/IR/Remarks.h"
#include "llvm/ADT/STLExtras.h"

using namespace mlir;
using namespace baechi;

static remark::RemarkOpts ofFit(StringRef name) {
  return remark::RemarkOpts::name(name).category("baechi-fit-memory");
}

void baechi::remarkFit(Location loc, const MemoryFit &fit) {
  for (const MemoryFit::Again &again : fit.again)
    if (auto remark = remark::passed(loc, ofFit("computed-again")))
      remark << remark::metric("Operator", again.name)
             << remark::metric("Times", again.times)
             << remark::metric("Ns", again.ns)
             << remark::metric("Bytes", again.bytes);
  if (auto remark = remark::passed(loc, ofFit("fits")))
    remark << remark::metric("PeakBefore", fit.peakBefore)
           << remark::metric("PeakAfter", fit.peakAfter)
           << remark::metric("FloorBytes", fit.floorBytes)
           << remark::metric("FloorOperator", fit.floorOperator)
           << remark::metric("WorkNs", fit.workNs)
           << remark::metric("AgainNs", fit.againNs);
}

void baechi::remarkSpill(Location loc, const SpillFit &fit) {
  for (const SpillFit::Spilled &each : fit.spilled)
    if (auto remark = remark::passed(loc, ofFit("spilled")))
      remark << remark::metric("Operator", each.name)
             << remark::metric("Fetches", each.fetches)
             << remark::metric("Bytes", each.bytes);
  if (auto remark = remark::passed(loc, ofFit("fits")))
    remark << remark::metric("PeakBefore", fit.peakBefore)
           << remark::metric("PeakAfter", fit.peakAfter)
           << remark::metric("FloorBytes", fit.floorBytes)
           << remark::metric("FloorOperator", fit.floorOperator)
           << remark::metric("Pool", fit.pool)
           << remark::metric("StepNs", fit.stepNs)
           << remark::metric("OutBytes", fit.outBytes)
           << remark::metric("InBytes", fit.inBytes)
           << remark::metric("ArgumentBytes", fit.argumentBytes);
}

void baechi::remarkPlacedAgain(Location loc, ArrayRef<ArenaReport> arenas,
                               const placement::Machine &next) {
  for (auto [arena, device] : llvm::zip(arenas, next.devices))
    if (arena.bytes > arena.limit)
      if (auto remark =
              remark::missed(loc, remark::RemarkOpts::name("placed-again")
                                      .category("baechi-place-and-plan")))
        remark << remark::metric("Device", arena.device)
               << remark::metric("ArenaBytes", arena.bytes)
               << remark::metric("PromisedBytes", arena.promised)
               << remark::metric("LimitBytes", arena.limit)
               << remark::metric("NextLimitBytes", device.memory);
}

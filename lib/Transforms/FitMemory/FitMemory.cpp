//===- FitMemory.cpp - Compute values again to hold fewer bytes -----------===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Baechi/Analysis/MachineAttr.h"
#include "Baechi/Placement/Model/Pool.h"
#include "Baechi/Placement/Model/Text.h"
#include "Baechi/Transforms/Passes.h"
#include "MemoryFitter.h"

namespace baechi {
#define GEN_PASS_DEF_FITMEMORY
#include "Baechi/Transforms/Passes.h.inc"
} // namespace baechi

using namespace mlir;
using namespace baechi;

namespace {
struct FitMemory : public baechi::impl::FitMemoryBase<FitMemory> {
  using FitMemoryBase::FitMemoryBase;

  void runOnOperation() override {
    if (limit < 0) {
      emitError(getOperation().getLoc())
          << "limit is " << int64_t(limit) << "; give bytes";
      return signalPassFailure();
    }
    placement::Machine target;
    target.devices.push_back({"", "host", limit});
    if (limit == 0 || !machine.empty()) {
      std::optional<placement::Machine> given =
          machineOf(getOperation(), machine);
      if (!given)
        return signalPassFailure();
      // What waits in a pool, the pass that places finds.
      target = placement::withoutPools(*given);
    }
    int64_t bytes = limit == 0 ? placement::computingBytes(target) : limit;
    FailureOr<MemoryFitter> fitter =
        MemoryFitter::create(getOperation(), target);
    if (failed(fitter))
      return signalPassFailure();
    if (fitter->peakBytes() <= bytes)
      return;
    std::optional<FitProposal> found = fitter->within(bytes);
    if (!found) {
      emitError(getOperation().getLoc())
          << "no order holds " << placement::bytesText(bytes, 2)
          << " or less, whatever is computed again: '"
          << fitter->nameOf(fitter->floorOfOrders().op) << "' by itself needs "
          << placement::bytesTextUp(fitter->floorOfOrders().bytes, 2)
          << ", of them " << placement::bytesText(fitter->residentBytes(), 2)
          << " of arguments";
      return signalPassFailure();
    }
    OwningOpRef<ModuleOp> rewritten = fitter->rewrite(*found);
    getOperation().getBodyRegion().takeBody(rewritten->getBodyRegion());
  }
};
} // namespace

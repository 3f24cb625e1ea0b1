//===- AnnotateCosts.cpp - Give every operator a cost -*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Baechi/Analysis/Program.h"
#include "Baechi/Analysis/Roofline.h"
#include "Baechi/Transforms/Passes.h"

namespace baechi {
#define GEN_PASS_DEF_ANNOTATECOSTS
#include "Baechi/Transforms/Passes.h.inc"
} // namespace baechi

using namespace mlir;
using namespace baechi;

namespace {
struct AnnotateCosts : public baechi::impl::AnnotateCostsBase<AnnotateCosts> {
  using AnnotateCostsBase::AnnotateCostsBase;

  void runOnOperation() override {
    ModuleOp module = getOperation();
    FailureOr<func::FuncOp> step = findStep(module);
    if (failed(step))
      return signalPassFailure();
    SmallVector<Roofline> kinds = defaultRooflines();
    if (!roofline.empty()) {
      std::string error;
      auto given = parseRooflines(roofline, error);
      if (!given) {
        emitError(module.getLoc()) << error;
        return signalPassFailure();
      }
      kinds = std::move(*given);
    }
    // The same kernel does the same work at every call.
    llvm::DenseMap<Operation *, Work> workOfKernel;
    for (Operation *op : operatorsOf(*step)) {
      func::FuncOp kernel = kernelOf(op);
      Work work;
      if (kernel) {
        auto [it, first] = workOfKernel.try_emplace(kernel);
        if (first)
          it->second = workOf(op);
        work = it->second;
      } else {
        work = workOf(op);
      }
      op->setAttr(BaechiDialect::kCost, costOf(kinds, work, kernel));
    }
  }

  CostAttr costOf(ArrayRef<Roofline> kinds, const Work &work,
                  func::FuncOp kernel) {
    Builder builder(&getContext());
    NamedAttrList times;
    for (const Roofline &kind : kinds)
      times.set(kind.kind, builder.getI64IntegerAttr(kind.timeNs(work)));
    int64_t scratch = 0;
    if (kernel)
      if (auto bytes = kernel->getAttrOfType<IntegerAttr>(
              BaechiDialect::kKernelScratch))
        scratch = bytes.getInt();
    return CostAttr::get(&getContext(), times.getDictionary(&getContext()),
                         scratch);
  }
};
} // namespace

//===- FixSums.cpp - One order for each sum -------------------------------===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Baechi/Analysis/ExactSums.h"
#include "Baechi/Analysis/Program.h"
#include "Baechi/Dialect/Baechi.h"
#include "Baechi/Transforms/Exact/Passes.h"
#include "mlir/Dialect/Linalg/Transforms/Transforms.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

namespace baechi {
#define GEN_PASS_DEF_FIXSUMS
#include "Baechi/Transforms/Exact/Passes.h.inc"
} // namespace baechi

using namespace mlir;
using namespace baechi;

/// Reductions whose bodies are not shown would lose their flags when they are
/// printed.
static void showBodies(func::FuncOp step) {
  IRRewriter rewriter(step.getContext());
  SmallVector<Operation *> found;
  step.walk([&](Operation *op) {
    auto loops = dyn_cast<linalg::LinalgOp>(op);
    if (isa<linalg::AggregatedOpInterface>(op) ||
        (loops && !isa<linalg::GenericOp>(op) &&
         loops.getNumReductionLoops() > 0))
      found.push_back(op);
  });
  for (Operation *op : found) {
    rewriter.setInsertionPoint(op);
    if (auto aggregate = dyn_cast<linalg::AggregatedOpInterface>(op)) {
      FailureOr<SmallVector<Value>> parts =
          aggregate.decomposeOperation(rewriter);
      if (succeeded(parts))
        rewriter.replaceOp(op, *parts);
      continue;
    }
    SmallVector<NamedAttribute> said = llvm::to_vector(
        llvm::make_filter_range(op->getDiscardableAttrs(), [](auto attr) {
          return isa_and_nonnull<BaechiDialect>(attr.getNameDialect());
        }));
    // What has no body of scalars stays as it is.
    FailureOr<linalg::GenericOp> shown =
        linalg::generalizeNamedOp(rewriter, cast<linalg::LinalgOp>(op));
    if (succeeded(shown))
      for (NamedAttribute attr : said)
        (*shown)->setDiscardableAttr(attr.getName(), attr.getValue());
  }
}

namespace {
struct FixSums : public baechi::impl::FixSumsBase<FixSums> {
  void runOnOperation() override {
    FailureOr<func::FuncOp> step = findFuncStep(getOperation());
    if (failed(step))
      return signalPassFailure();
    clearFastMath(*step);
    showBodies(*step);
    step->walk([](linalg::GenericOp op) { markSums(op); });
    (*step)->setAttr(BaechiDialect::kImplementation,
                     StringAttr::get(&getContext(), kExact));
  }
};
} // namespace

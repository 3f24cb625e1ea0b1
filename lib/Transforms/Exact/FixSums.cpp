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
#include "ShowBodies.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

namespace baechi {
#define GEN_PASS_DEF_FIXSUMS
#include "Baechi/Transforms/Exact/Passes.h.inc"
} // namespace baechi

using namespace mlir;
using namespace baechi;

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

//===- IndexMaps.cpp - Affine maps of positions as arithmetic -*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Phases.h"
#include "mlir/Conversion/AffineToStandard/AffineToStandard.h"
#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Transforms/DialectConversion.h"

using namespace mlir;
using namespace baechi;

LogicalResult formkernels::computeIndexMaps(func::FuncOp step) {
  ConversionTarget target(*step.getContext());
  target.addIllegalOp<affine::AffineApplyOp, affine::AffineMinOp,
                      affine::AffineMaxOp>();
  target.markUnknownOpDynamicallyLegal([](Operation *) { return true; });
  RewritePatternSet patterns(step.getContext());
  populateAffineToStdConversionPatterns(patterns);
  // Nothing else is illegal, so loops stay and are refused by name.
  return applyPartialConversion(step, target, std::move(patterns));
}

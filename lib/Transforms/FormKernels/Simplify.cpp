//===- Simplify.cpp - Canonical forms between phases -*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Phases.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Linalg/Transforms/Transforms.h"
#include "mlir/IR/PatternMatch.h"
#include "mlir/Transforms/GreedyPatternRewriteDriver.h"
#include "mlir/Transforms/WalkPatternRewriteDriver.h"

using namespace mlir;
using namespace mlir::linalg;
using namespace baechi;
using namespace baechi::formkernels;

/// All that --canonicalize applies.
static void addCanonicalizations(RewritePatternSet &patterns) {
  MLIRContext *context = patterns.getContext();
  for (Dialect *dialect : context->getLoadedDialects())
    dialect->getCanonicalizationPatterns(patterns);
  for (RegisteredOperationName op : context->getRegisteredOperations())
    op.getCanonicalizationPatterns(patterns, context);
}

/// Regions have one block here: simplifying their control flow finds nothing.
static void applyTopDown(func::FuncOp step, RewritePatternSet &&patterns) {
  (void)applyPatternsGreedily(
      step, std::move(patterns),
      GreedyRewriteConfig()
          .setUseTopDownTraversal()
          .setRegionSimplificationLevel(GreedySimplifyRegionLevel::Disabled));
}

void formkernels::simplify(func::FuncOp step) {
  RewritePatternSet patterns(step.getContext());
  addCanonicalizations(patterns);
  applyTopDown(step, std::move(patterns));
}

void formkernels::foldUnitDimensions(func::FuncOp step) {
  ControlDropUnitDims options;
  RewritePatternSet fold(step.getContext());
  populateFoldUnitExtentDimsPatterns(fold, options);
  walkAndApplyPatterns(step, std::move(fold));

  RewritePatternSet patterns(step.getContext());
  populateMoveInitOperandsToInputPattern(patterns);
  populateFoldUnitExtentDimsCanonicalizationPatterns(patterns, options);
  addCanonicalizations(patterns);
  applyTopDown(step, std::move(patterns));
}

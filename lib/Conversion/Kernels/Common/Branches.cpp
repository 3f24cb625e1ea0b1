//===- Branches.cpp - Switches of kernels as conditions ---------*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Common/Lowering.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/PatternMatch.h"

using namespace mlir;
using namespace baechi;

namespace {
/// Takes the cases from `first` on, and the default, into nested conditions at
/// the insertion point; their results.
ValueRange nestCases(RewriterBase &rewriter, scf::IndexSwitchOp op,
                     size_t first) {
  Location loc = op.getLoc();
  Value number =
      arith::ConstantIndexOp::create(rewriter, loc, op.getCases()[first]);
  Value taken = arith::CmpIOp::create(rewriter, loc, arith::CmpIPredicate::eq,
                                      op.getArg(), number);
  auto nested = scf::IfOp::create(rewriter, loc, op.getResultTypes(), taken);
  rewriter.inlineRegionBefore(op.getCaseRegions()[first],
                              nested.getThenRegion(),
                              nested.getThenRegion().end());
  if (first + 1 == op.getCases().size()) {
    rewriter.inlineRegionBefore(op.getDefaultRegion(), nested.getElseRegion(),
                                nested.getElseRegion().end());
    return nested.getResults();
  }
  OpBuilder::InsertionGuard guard(rewriter);
  rewriter.createBlock(&nested.getElseRegion());
  ValueRange others = nestCases(rewriter, op, first + 1);
  scf::YieldOp::create(rewriter, loc, others);
  return nested.getResults();
}
} // namespace

void baechi::nestSwitches(ModuleOp kernels) {
  SmallVector<scf::IndexSwitchOp> switches;
  kernels.walk([&](scf::IndexSwitchOp op) { switches.push_back(op); });
  IRRewriter rewriter(kernels.getContext());
  for (scf::IndexSwitchOp op : switches) {
    rewriter.setInsertionPoint(op);
    if (!op.getCases().empty()) {
      rewriter.replaceOp(op, nestCases(rewriter, op, 0));
      continue;
    }
    Block &always = op.getDefaultRegion().front();
    Operation *yield = always.getTerminator();
    rewriter.inlineBlockBefore(&always, op);
    rewriter.replaceOp(op, yield->getOperands());
    rewriter.eraseOp(yield);
  }
}

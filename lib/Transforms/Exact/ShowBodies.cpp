//===- ShowBodies.cpp - Bodies of structured operations -------------------===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "ShowBodies.h"
#include "Baechi/Dialect/Baechi.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Linalg/Transforms/Transforms.h"

using namespace mlir;
using namespace baechi;

void baechi::showBodies(Operation *root) {
  IRRewriter rewriter(root->getContext());
  SmallVector<Operation *> found;
  root->walk([&](Operation *op) {
    auto loops = dyn_cast<linalg::LinalgOp>(op);
    if (isa<linalg::AggregatedOpInterface>(op) ||
        (loops && !isa<linalg::GenericOp>(op) &&
         (loops.getNumReductionLoops() > 0 || isa<linalg::AddOp>(op))))
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

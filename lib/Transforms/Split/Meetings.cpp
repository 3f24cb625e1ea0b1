//===- Meetings.cpp - Where pieces wait for each other --------------------===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Meetings.h"

using namespace mlir;
using namespace baechi;
using namespace baechi::split;

void split::findMeetings(Cut &cut, Block &block) {
  /// Values that pieces, or what they read, are computed from.
  llvm::DenseSet<Value> goesBack;
  SmallVector<Operation *> found; // the last first
  auto isMadeInPieces = [&](Value value) {
    Operation *producer = value.getDefiningOp();
    return producer && cut.values.count(value) &&
           cut.operations.contains(producer);
  };
  for (Operation &op : llvm::reverse(block.without_terminator())) {
    bool isRead = llvm::any_of(
        op.getResults(), [&](Value value) { return goesBack.contains(value); });
    auto entry = cut.operations.find(&op);
    bool isCut = entry != cut.operations.end() &&
                 entry->second.kind != OperationCut::Kind::Partial;
    if (!isCut && !isRead)
      continue;
    bool isMadeOfAll =
        isCut && entry->second.kind == OperationCut::Kind::Reduction;
    op.walk([&](Operation *inner) {
      for (Value operand : inner->getOperands()) {
        goesBack.insert(operand);
        isMadeOfAll |= !isCut && isMadeInPieces(operand);
      }
    });
    if (isRead && isMadeOfAll)
      found.push_back(&op);
  }
  cut.meetings.insert(found.rbegin(), found.rend());
}

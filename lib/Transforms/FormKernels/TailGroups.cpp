//===- TailGroups.cpp - What little follows a reduction ---------*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Baechi/Analysis/Contraction.h"
#include "RowGroups.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include <numeric>

using namespace mlir;
using namespace mlir::linalg;
using namespace baechi;
using namespace baechi::formkernels;

/// A tail has at most this share of the iterations of its reduction.
static constexpr int64_t kLeastRatio = 16;
/// Bounds the work of one merge, and a kernel's arguments.
static constexpr size_t kMaxMembers = 16;

static int64_t iterations(GenericOp op) {
  SmallVector<int64_t> ranges = op.getStaticLoopRanges();
  return std::accumulate(ranges.begin(), ranges.end(), int64_t(1),
                         std::multiplies<>());
}

static bool isReduction(GenericOp op) {
  return op && op.getNumReductionLoops() > 0 && !matchContraction(op);
}

void formkernels::groupTails(OperatorGroups &groups, RowExtents &rows) {
  // The iterations of the reduction that a group of several starts with.
  llvm::DenseMap<OperatorGroups::Group, int64_t> withTails;
  for (Operation *operation : groups.operators()) {
    auto op = dyn_cast<GenericOp>(operation);
    OperatorGroups::Group own = *groups.groupOf(operation);
    if (!op || op.getNumReductionLoops() > 0 || groups.members(own).size() > 1)
      continue;
    for (Operation *producer : groups.producers(operation)) {
      OperatorGroups::Group group = *groups.groupOf(producer);
      ArrayRef<Operation *> members = groups.members(group);
      int64_t reduced = withTails.lookup(group);
      if (auto generic = dyn_cast<GenericOp>(producer);
          members.size() == 1 && isReduction(generic))
        reduced = iterations(generic);
      if (reduced < kLeastRatio * iterations(op) ||
          members.size() >= kMaxMembers)
        continue;
      std::optional<OperatorGroups::Group> merged = groups.merge(group, own);
      if (!merged)
        continue;
      for (OperatorGroups::Group part : {group, own}) {
        rows.erase(part);
        withTails.erase(part);
      }
      withTails[*merged] = reduced;
      break;
    }
  }
}

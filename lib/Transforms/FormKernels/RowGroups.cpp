//===- RowGroups.cpp - Which operations share their rows -*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "RowGroups.h"
#include "Baechi/Analysis/Contraction.h"
#include "OperatorKinds.h"
#include "mlir/Analysis/FlatLinearValueConstraints.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Transforms/RegionUtils.h"
#include <numeric>

using namespace mlir;
using namespace mlir::linalg;
using namespace baechi;
using namespace baechi::formkernels;

/// A row of every member stays in the caches next to the processor.
static constexpr int64_t kMaxRowElements = 4096;
/// Bounds the work of one merge, and a kernel's arguments.
static constexpr size_t kMaxMembers = 64;
/// Readers of one tensor that are tried as siblings.
static constexpr size_t kMaxSiblings = 16;

/// The number of leading results of `map` that are the loops 0, 1, ... in this
/// order; at most `limit`.
static size_t leadingLoops(AffineMap map, size_t limit) {
  if (!map.isProjectedPermutation())
    return 0;
  size_t count = 0;
  while (count < std::min<size_t>(limit, map.getNumResults()) &&
         map.getDimPosition(count) == count)
    ++count;
  return count;
}

/// Whether a row of the loops of `op` reads one slice of each operand. Upstream
/// tiles by the first and the last index that a row reads: they must grow with
/// the loops, as a reversal's do not.
static bool readsSlices(Operation *op) {
  for (AffineMap map : cast<GenericOp>(op).getIndexingMapsArray())
    for (AffineExpr expr : map.getResults()) {
      SmallVector<int64_t> factors;
      if (failed(getFlattenedAffineExpr(expr, map.getNumDims(),
                                        /*numSymbols=*/0, &factors)) ||
          factors.size() != map.getNumDims() + 1 ||
          llvm::any_of(ArrayRef(factors).drop_back(),
                       [](int64_t factor) { return factor < 0; }))
        return false;
    }
  return true;
}

/// The leading parallel loops of `op` that its results have as their leading
/// dimensions.
static SmallVector<int64_t> rowsOf(Operation *operation) {
  auto op = dyn_cast<GenericOp>(operation);
  if (!op || matchContraction(op))
    return {};
  size_t count = 0;
  for (utils::IteratorType iterator : op.getIteratorTypesArray()) {
    if (iterator != utils::IteratorType::parallel)
      break;
    ++count;
  }
  for (OpOperand &init : op.getDpsInitsMutable()) {
    // Elementwise operations that also read where they write are not merged.
    if (op.getNumReductionLoops() == 0 && op.payloadUsesValueFromOperand(&init))
      return {};
    count = leadingLoops(op.getMatchingIndexingMap(&init), count);
  }
  SmallVector<int64_t> rows = op.getStaticLoopRanges();
  rows.truncate(count);
  if (count < op.getNumLoops() && !readsSlices(op))
    return {};
  return rows;
}

static int64_t product(ArrayRef<int64_t> sizes) {
  return std::accumulate(sizes.begin(), sizes.end(), int64_t(1),
                         std::multiplies<>());
}

namespace {
class RowMerger {
public:
  explicit RowMerger(OperatorGroups &groups) : groups(groups) {
    for (Operation *op : groups.operators())
      if (SmallVector<int64_t> found = rowsOf(op); !found.empty())
        rows[*groups.groupOf(op)] = found;
  }

  /// Merges the groups of two operations if that shares rows. `limit` bounds
  /// the number of loops over rows.
  bool merge(Operation *x, Operation *y, size_t limit);
  bool hasRows(Operation *op) const {
    return rows.contains(*groups.groupOf(op));
  }
  RowExtents takeRows() { return std::move(rows); }

private:
  size_t sharedRows(OperatorGroups::Group reader, OperatorGroups::Group source,
                    size_t limit) const;

  OperatorGroups &groups;
  RowExtents rows;
};
} // namespace

/// The number of loops over rows, at most `limit`, with which `reader` finds
/// all that it reads of `source` in the same row.
size_t RowMerger::sharedRows(OperatorGroups::Group reader,
                             OperatorGroups::Group source, size_t limit) const {
  auto isSource = [&](Value value) {
    Operation *producer = value.getDefiningOp();
    return producer && groups.groupOf(producer) == source;
  };
  for (Operation *member : groups.members(reader)) {
    // Most members read nothing of the other group.
    if (llvm::none_of(groups.producers(member), [&](Operation *producer) {
          return groups.groupOf(producer) == source;
        }))
      continue;
    auto op = cast<GenericOp>(member);
    for (OpOperand *input : op.getDpsInputOperands())
      if (isSource(input->get()))
        limit = leadingLoops(op.getMatchingIndexingMap(input), limit);
    // Through views, as captured tensors and as inits, other rows are in reach.
    SetVector<Value> others;
    getUsedValuesDefinedAbove(op->getRegions(), others);
    others.insert_range(op.getDpsInits());
    for (Value input : op.getDpsInputs())
      if (Operation *producer = input.getDefiningOp();
          producer && isCloned(producer))
        others.insert(input);
    for (Value value : others) {
      if (isSource(value))
        return 0;
      if (Operation *producer = value.getDefiningOp();
          producer && isCloned(producer) &&
          llvm::any_of(readsOf(producer).tensors, isSource))
        return 0;
    }
  }
  return limit;
}

bool RowMerger::merge(Operation *x, Operation *y, size_t limit) {
  OperatorGroups::Group a = *groups.groupOf(x), b = *groups.groupOf(y);
  auto rowsA = rows.find(a), rowsB = rows.find(b);
  if (a == b || rowsA == rows.end() || rowsB == rows.end() ||
      groups.members(a).size() + groups.members(b).size() > kMaxMembers)
    return false;
  SmallVector<int64_t> shared;
  for (auto [sizeA, sizeB] : llvm::zip(rowsA->second, rowsB->second)) {
    if (sizeA != sizeB || shared.size() == limit)
      break;
    shared.push_back(sizeA);
  }
  shared.truncate(sharedRows(a, b, shared.size()));
  shared.truncate(sharedRows(b, a, shared.size()));
  if (shared.empty())
    return false;
  auto tooLong = [&](Operation *op) {
    return product(cast<GenericOp>(op).getStaticLoopRanges()) /
               std::max<int64_t>(1, product(shared)) >
           kMaxRowElements;
  };
  auto isElementwise = [&](Operation *op) {
    return cast<GenericOp>(op).getNumLoops() == shared.size();
  };
  auto members =
      llvm::concat<Operation *const>(groups.members(a), groups.members(b));
  if (llvm::any_of(members, tooLong) ||
      (!llvm::all_of(members, isElementwise) &&
       !llvm::all_of(members, readsSlices)))
    return false;
  std::optional<OperatorGroups::Group> merged = groups.merge(a, b);
  if (!merged)
    return false;
  rows.erase(*merged == a ? b : a);
  rows[*merged] = shared;
  return true;
}

/// With how many loops over rows `reader` reads the results of `source` itself.
static size_t alignedRows(Operation *reader, Operation *source) {
  auto op = cast<GenericOp>(reader);
  size_t aligned = 0;
  for (OpOperand *input : op.getDpsInputOperands())
    if (input->get().getDefiningOp() == source)
      aligned = std::max(aligned, leadingLoops(op.getMatchingIndexingMap(input),
                                               op.getNumLoops()));
  return aligned;
}

RowExtents formkernels::groupByRows(OperatorGroups &groups) {
  RowMerger merger(groups);
  for (Operation *op : groups.operators())
    for (Operation *producer : groups.producers(op))
      (void)merger.merge(producer, op, SIZE_MAX);

  // Siblings must share rows of the tensor that they both read: two readers of
  // a scalar have nothing to do with each other.
  for (Operation *op : groups.operators()) {
    SmallVector<std::pair<Operation *, size_t>> siblings;
    for (Operation *reader : groups.consumers(op)) {
      if (siblings.size() == kMaxSiblings)
        break;
      if (merger.hasRows(reader))
        if (size_t aligned = alignedRows(reader, op))
          siblings.push_back({reader, aligned});
    }
    for (auto [sibling, aligned] :
         llvm::drop_begin(siblings, siblings.empty() ? 0 : 1))
      (void)merger.merge(siblings.front().first, sibling,
                         std::min(aligned, siblings.front().second));
  }
  return merger.takeRows();
}

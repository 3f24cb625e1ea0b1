//===- Spmd.cpp - A plan for devices that all run one program -------------===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Spmd.h"
#include "Baechi/Analysis/Program.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "llvm/ADT/StringExtras.h"
#include <algorithm>

using namespace mlir;
using namespace baechi;
using namespace baechi::split;

LogicalResult split::checkEven(const SplitPlan &plan, int64_t devices) {
  for (const Cut &cut : plan.cuts) {
    if (cut.operations.empty() ||
        (int64_t(cut.sizes.size()) == devices && llvm::all_equal(cut.sizes)))
      continue;
    std::string sizes = llvm::join(
        llvm::map_range(cut.sizes,
                        [](int64_t size) { return std::to_string(size); }),
        "+");
    return cut.operations.front().first->emitOpError()
           << "is cut into " << sizes
           << " elements; the devices of an SPMD program have equal pieces, "
           << devices << " here";
  }
  return success();
}

/// A part that begins at every device's multiple of the same length: what lies
/// within the outer elements of a joined dimension has no such place.
static bool isContiguous(const Share &share) {
  return share.kind != Share::Kind::Part || share.position.outer == 1;
}

static Share partAt(CutPosition position) {
  return {Share::Kind::Part, position};
}

SpmdPlan::SpmdPlan(func::FuncOp step, const SplitPlan &plan)
    : step(step), body(&step.front()), plan(plan) {
  shareArguments();
  shareResults();
  shareReturned();
  findCollectives();
}

/// As the first cut reads them; that one saves the most, or was asked for.
void SpmdPlan::shareArguments() {
  for (BlockArgument argument : step.getArguments()) {
    dependent.insert(argument);
    for (const Cut &cut : plan.cuts) {
      auto at = cut.values.find(argument);
      if (at == cut.values.end() || !isContiguous(partAt(at->second)))
        continue;
      shares[argument] = partAt(at->second);
      break;
    }
  }
}

void SpmdPlan::shareResults() {
  for (Operation &op : body->without_terminator()) {
    if (llvm::any_of(valuesReadBy(&op),
                     [&](Value value) { return dependent.contains(value); }))
      for (Value result : op.getResults())
        dependent.insert(result);
    auto found = plan.cutOf.find(&op);
    if (found == plan.cutOf.end())
      continue;
    const OperationCut &how =
        plan.cuts[found->second].operations.find(&op)->second;
    bool isPartial = how.kind != OperationCut::Kind::Parallel;
    for (auto [result, at] : llvm::zip(op.getResults(), how.results))
      shares[result] = isPartial ? Share{Share::Kind::Partial, CutPosition()}
                                 : (at ? partAt(*at) : Share());
    for (auto [result, combiner] : llvm::zip(op.getResults(), how.combiners))
      if (isa<arith::AddFOp, arith::AddIOp>(combiner))
        sums.insert(result);
  }
}

void SpmdPlan::shareReturned() {
  Operation *terminator = body->getTerminator();
  for (Value value : terminator->getOperands()) {
    Share share = shareOf(value);
    bool isKept = share.kind == Share::Kind::Part && isContiguous(share);
    results.push_back(isKept ? share : Share());
  }
  for (BlockArgument argument : step.getArguments())
    if (auto updated = step.getArgAttrOfType<IntegerAttr>(
            argument.getArgNumber(), BaechiDialect::kUpdatedBy))
      results[updated.getInt()] = shareOf(argument);
}

/// What a use by an operation of the step, or within its regions, reads.
Share SpmdPlan::wantedBy(OpOperand &use) const {
  Operation *op = body->findAncestorOpInBlock(*use.getOwner());
  if (op->hasTrait<OpTrait::IsTerminator>())
    return results[use.getOperandNumber()];
  auto found = plan.cutOf.find(op);
  if (found == plan.cutOf.end())
    return Share();
  const OperationCut &how =
      plan.cuts[found->second].operations.find(op)->second;
  if (use.getOwner() != op) {
    auto at = how.captures.find(use.get());
    return at == how.captures.end() ? Share() : partAt(at->second);
  }
  unsigned number = use.getOperandNumber();
  if (llvm::is_contained(how.partialOperands, number))
    return {Share::Kind::Partial, CutPosition()};
  return how.operands[number] ? partAt(*how.operands[number]) : Share();
}

/// Notes what brings \p value to a reader that wants it as \p wanted; \p seen:
/// what earlier readers got.
void SpmdPlan::read(Value value, const Share &wanted,
                    SmallVectorImpl<Share> &seen) {
  if (llvm::is_contained(seen, wanted) || llvm::is_contained(seen, Share()))
    return; // A part of a whole costs nothing.
  // Partial results are joined by all, whatever part of them is read then.
  bool isPartial = shareOf(value).kind == Share::Kind::Partial;
  bool isWhole = isPartial || wanted.kind == Share::Kind::Whole;
  seen.push_back(isWhole ? Share() : wanted);
  messages.push_back(
      {isPartial ? "all-reduce" : (isWhole ? "all-gather" : "all-to-all"),
       value});
}

void SpmdPlan::findCollectives() {
  auto visit = [&](Value value) {
    if (isFree(value) || !isa<RankedTensorType>(value.getType()))
      return;
    SmallVector<Share> wanted, seen{shareOf(value)};
    for (OpOperand &use : value.getUses())
      wanted.push_back(wantedBy(use));
    // Wholes first: they serve all others.
    std::stable_partition(wanted.begin(), wanted.end(),
                          [](const Share &share) { return share == Share(); });
    for (const Share &share : wanted)
      read(value, share, seen);
  };
  for (BlockArgument argument : step.getArguments())
    visit(argument);
  for (Operation &op : body->without_terminator())
    for (Value result : op.getResults())
      visit(result);
}

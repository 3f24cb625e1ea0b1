//===- SumMessages.cpp - Which sums pieces exchange together --------------===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "SumMessages.h"
#include "Baechi/Analysis/Program.h"
#include "SumForms.h"
#include "Uniform.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

using namespace mlir;
using namespace baechi;
using namespace baechi::split;

/// Of what is summed up, in operations.
static constexpr size_t kMostElements = 64;

static bool isSmall(Value value, int64_t most) {
  auto type = dyn_cast<RankedTensorType>(value.getType());
  return type && type.getRank() > 0 &&
         tensorBytes(type, /*aligned=*/false).value_or(most + 1) <= most;
}

SumMessages::SumMessages(Block &block, int64_t mostBytes, const SplitPlan &plan,
                         const llvm::DenseMap<Operation *, Moments> &moments,
                         bool linear, bool branches)
    : mostBytes(mostBytes), plan(plan), takesApart(linear),
      joinsBranches(branches) {
  if (mostBytes == 0)
    return;
  for (const auto &[sum, both] : moments)
    sumOf[both.squares] = sum;
  for (Operation &op : block.without_terminator())
    visit(&op);
}

static const Cut *cutWith(const SplitPlan &plan, Operation *op) {
  auto found = plan.cutOf.find(op);
  return found == plan.cutOf.end() ? nullptr : &plan.cuts[found->second];
}

bool SumMessages::isSum(Operation *op) const {
  const Cut *cut = cutWith(plan, op);
  return cut && !cut->chained &&
         cut->operations.find(op)->second.kind == OperationCut::Kind::Reduction;
}

void SumMessages::visit(Operation *op) {
  unsigned depth = 0;
  op->walk([&](Operation *inner) {
    for (Value operand : inner->getOperands())
      depth = std::max(depth, depthOf(operand));
  });
  depths[op] = depth;
  if (Operation *sum = sumOf.lookup(op)) {
    // It waits for the mean of its own piece alone.
    depths[op] = depths.lookup(sum);
    sentWith[op] = sum;
    return;
  }
  if (!isSum(op))
    return;
  depths[op] = depth + 1;
  linalg::LinalgOp sum = sumFromZero(op);
  if (!sum || !isSmall(op->getResult(0), mostBytes))
    return;
  std::optional<LinearSum> found = takenApart(op, depth);
  if (!found) {
    addToGroup(op, sum.getDpsInputs()[0], depth);
    return;
  }
  // It is there as soon as what its factors wait for.
  depths[op] = depth;
  unsigned ofTerms = 0;
  for (Value term : found->terms)
    ofTerms = std::max(ofTerms, depthOf(term));
  for (Value term : found->terms)
    addToGroup(op, term, ofTerms);
  linear.insert({op, std::move(*found)});
}

/// \p op, which waits for \p depth exchanges, as sums that wait for fewer.
std::optional<LinearSum> SumMessages::takenApart(Operation *op,
                                                 unsigned depth) {
  if (!takesApart || depth == 0)
    return std::nullopt;
  std::optional<LinearSum> found =
      linearSumOf(op, [&](Value value) { return depthOf(value) == depth; });
  if (!found)
    return std::nullopt;
  const Cut &cut = *cutWith(plan, op);
  const std::optional<CutPosition> &at =
      cut.operations.find(op)->second.operands[0];
  if (!at || !llvm::all_of(found->terms, [&](Value term) {
        auto known = cut.values.find(term);
        return known != cut.values.end() && known->second == *at;
      }))
    return std::nullopt;
  SmallVector<Operation *> chain;
  for (Operation *last = op; cut.staysPartial(last->getResult(0));) {
    last = *last->getResult(0).user_begin();
    if (cut.operations.find(last)->second.partialOperands.size() != 1)
      return std::nullopt;
    chain.push_back(last);
  }
  followers.insert(chain.begin(), chain.end());
  return found;
}

/// \p sum waits for \p depth exchanges, and is sent with what others sum up,
/// at the same time, of what \p input is computed of, element by element.
void SumMessages::addToGroup(Operation *sum, Value input, unsigned depth) {
  ArrayRef<int64_t> shape = cast<RankedTensorType>(input.getType()).getShape();
  auto addAs = [&](Value value) {
    auto [first, isNew] = firstUse.try_emplace({value, depth}, sum);
    Operation *a = firstOf(sum), *b = firstOf(first->second);
    if (a != b)
      sentWith[a->isBeforeInBlock(b) ? b : a] = a->isBeforeInBlock(b) ? a : b;
  };
  if (joinsBranches)
    return addAs(Value());
  SetVector<Value> work;
  work.insert(input);
  for (size_t at = 0; at < work.size() && at < kMostElements; ++at) {
    Value value = work[at];
    auto type = dyn_cast<RankedTensorType>(value.getType());
    if (!type || type.getShape() != shape || isUniform(value))
      continue;
    if (std::optional<ElementOf> element = elementOf(value)) {
      work.insert(element->operands.begin(), element->operands.end());
      continue;
    }
    addAs(value);
  }
}

Operation *split::sumBehind(Operation *op, const Cut &cut) {
  while (true) {
    auto found = cut.operations.find(op);
    if (found == cut.operations.end() ||
        found->second.kind != OperationCut::Kind::Partial)
      return op;
    op = op->getOperand(found->second.partialOperands[0]).getDefiningOp();
  }
}

//===- Moments.cpp - Which sums are a mean and a variance's ---------------===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Moments.h"
#include "Baechi/Analysis/Program.h"
#include "SumForms.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"

using namespace mlir;
using namespace baechi;
using namespace baechi::split;

/// The two operands of an \p Element on elements that lie at the same place.
template <typename Element>
static std::optional<std::pair<Value, Value>> operandsOf(Value value) {
  std::optional<ElementOf> found = elementOf(value);
  if (!found || !isa<Element>(found->op))
    return std::nullopt;
  return std::pair(found->operands[0], found->operands[1]);
}

std::optional<Moments> split::momentsOf(Operation *squares) {
  linalg::LinalgOp second = sumFromZero(squares);
  if (!second)
    return std::nullopt;
  AffineMap read = second.getIndexingMapsArray()[0];
  AffineMap written = second.getIndexingMapsArray()[1];
  Type element = getElementTypeOrSelf(squares->getResult(0).getType());
  if (!element.isF32() && !element.isF64())
    return std::nullopt; // others hold no such counts
  auto square = operandsOf<arith::MulFOp>(second.getDpsInputs()[0]);
  if (!square || square->first != square->second || !read.isPermutation())
    return std::nullopt;
  auto centred = operandsOf<arith::SubFOp>(square->first);
  if (!centred || centred->first.getType() != square->first.getType())
    return std::nullopt;
  // Each is less the mean of those that it is summed up with.
  AffineMap where = read;
  auto mean = operandsOf<arith::DivFOp>(repeatedSource(centred->second, where));
  if (!mean || simplifyAffineMap(where) != written)
    return std::nullopt;
  linalg::LinalgOp first = sumFromZero(mean->first.getDefiningOp());
  if (!first || first.getDpsInputs()[0] != centred->first ||
      first.getIndexingMapsArray() != second.getIndexingMapsArray())
    return std::nullopt;
  int64_t terms = 1;
  for (auto [size, kind] : llvm::zip_equal(second.getStaticLoopRanges(),
                                           second.getIteratorTypesArray()))
    if (kind == utils::IteratorType::reduction)
      terms *= size;
  // It is the mean: divided by as many as there are.
  if (constantOf(mean->second) != double(terms))
    return std::nullopt;
  return Moments{first, second, centred->first, terms};
}

static bool isSmall(Value value, int64_t most) {
  return tensorBytes(value.getType(), /*aligned=*/false).value_or(most + 1) <=
         most;
}

llvm::DenseMap<Operation *, Moments> split::mergedMoments(const SplitPlan &plan,
                                                          int64_t mostBytes) {
  llvm::DenseMap<Operation *, Moments> merged;
  if (!plan.mergeMoments || mostBytes == 0)
    return merged;
  for (const Cut &cut : plan.cuts)
    for (const auto &[op, how] : cut.operations) {
      auto isSent = [&](Operation *sum, const OperationCut &how) {
        Value result = sum->getResult(0);
        return how.kind == OperationCut::Kind::Reduction &&
               cast<RankedTensorType>(result.getType()).getRank() > 0 &&
               isSmall(result, mostBytes) && !cut.staysPartial(result);
      };
      if (cut.chained || how.kind != OperationCut::Kind::Reduction)
        continue;
      std::optional<Moments> found = momentsOf(op);
      if (!found || !isSent(op, how))
        continue;
      auto sum = cut.operations.find(found->sum);
      if (sum != cut.operations.end() && isSent(found->sum, sum->second) &&
          sum->second.operands[0] && sum->second.operands[0] == how.operands[0])
        merged.insert({found->sum, *found});
    }
  return merged;
}

//===- TensorWays.cpp - Operators with a share of their matrices ----------===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "TensorWays.h"
#include "ChooseCuts.h"

using namespace mlir;
using namespace baechi;
using namespace baechi::split;

TensorWays::TensorWays(const BatchRoles &batch, int64_t count)
    : count(count), batch(batch) {
  PlanOptions options;
  options.pieces = count;
  options.reductions = options.even = true;
  FunctionOpInterface step = batch.whole.step;
  for (auto [id, argument] : llvm::enumerate(step.getArguments())) {
    auto type = dyn_cast<RankedTensorType>(argument.getType());
    bool isCut = llvm::any_of(plan.cuts, [&](const Cut &cut) {
      return cut.values.contains(argument);
    });
    if (batch.roles[id] != Role::Shared || !type || type.getRank() < 2 || isCut)
      continue;
    for (unsigned dim = type.getRank(); dim-- > 0;)
      if (int64_t extent = type.getDimSize(dim); extent % count == 0) {
        commit(plan,
               followCut(argument, {dim}, evenPieces(extent, count), options,
                         plan),
               "it is a matrix that the step is given");
        break;
      }
  }
}

const OperationCut *TensorWays::cutOf(int32_t id) const {
  Operation *op = batch.whole.operation(id);
  auto cut = plan.cutOf.find(op);
  if (!op || cut == plan.cutOf.end())
    return nullptr;
  const OperationCut &how = plan.cuts[cut->second].operations.find(op)->second;
  return how.kind == OperationCut::Kind::Partial || !how.windows.empty()
             ? nullptr
             : &how;
}

std::optional<unsigned> TensorWays::dimIn(const Cut &cut, Value value) const {
  auto at = cut.values.find(value);
  if (at == cut.values.end() || at->second.outer != 1 || at->second.inner != 1)
    return std::nullopt;
  return at->second.dim;
}

std::optional<unsigned> TensorWays::dimOf(int32_t id, int32_t output) const {
  Value value = batch.valueOf(id, output);
  if (const OperationCut *how = cutOf(id)) {
    const std::optional<CutPosition> &at = how->results[output];
    return at && at->outer == 1 && at->inner == 1
               ? std::optional<unsigned>(at->dim)
               : std::nullopt;
  }
  if (isa<BlockArgument>(value))
    for (const Cut &cut : plan.cuts)
      if (cut.values.contains(value))
        return dimIn(cut, value);
  return std::nullopt;
}

std::optional<unsigned> TensorWays::dimReadBy(int32_t reader, int32_t from,
                                              int32_t output) const {
  const OperationCut *how = cutOf(reader);
  if (!how)
    return std::nullopt;
  Operation *op = batch.whole.operation(reader);
  const Cut &cut = plan.cuts[plan.cutOf.lookup(op)];
  Value root = batch.valueOf(from, output);
  bool isRead = false;
  for (OpOperand &use : op->getOpOperands()) {
    if (rootOf(use.get()) != root)
      continue;
    isRead = true;
    auto at = cut.values.find(use.get());
    if (at == cut.values.end() ||
        how->operands[use.getOperandNumber()] != at->second)
      return std::nullopt;
  }
  return isRead ? dimIn(cut, root) : std::nullopt;
}

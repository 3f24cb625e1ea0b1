//===- ChooseBatch.cpp - The batch that replicas share out ----------------===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "ChooseBatch.h"
#include "Describe.h"

using namespace mlir;
using namespace baechi;
using namespace baechi::split;

namespace {
/// Whether an argument is a parameter or other state, of which the step returns
/// the next value: its dimensions are no batch.
enum class Returned { No, Perhaps, Yes };

StringRef nameIn(func::FuncOp step, std::optional<unsigned> argument,
                 unsigned result) {
  auto name =
      argument
          ? step.getArgAttrOfType<StringAttr>(*argument, BaechiDialect::kName)
          : step.getResultAttrOfType<StringAttr>(result, BaechiDialect::kName);
  return name ? name.getValue() : StringRef();
}

/// Of `params/w` and `result0/params/w`, as of what is donated and what is not,
/// the structure's own part is the same.
bool isNextOf(StringRef argument, StringRef result) {
  StringRef own = argument.split('/').second;
  return !own.empty() && result.ends_with(own) &&
         result.drop_back(own.size()).ends_with("/");
}

Returned isReturned(func::FuncOp step, BlockArgument argument, const Cut &cut) {
  unsigned number = argument.getArgNumber();
  if (step.getArgAttr(number, BaechiDialect::kUpdatedBy))
    return Returned::Yes;
  Returned found = Returned::No;
  CutPosition position = cut.values.lookup(argument);
  for (OpOperand &result : step.front().getTerminator()->getOpOperands()) {
    if (result.get().getType() != argument.getType())
      continue;
    if (isNextOf(nameIn(step, number, 0),
                 nameIn(step, std::nullopt, result.getOperandNumber())))
      return Returned::Yes;
    auto at = cut.values.find(result.get());
    if (at != cut.values.end() && at->second == position)
      found = Returned::Perhaps;
  }
  return found;
}

/// The strongest of what is known of the arguments that a class runs through.
Returned isReturned(func::FuncOp step, const Cut &cut) {
  Returned strongest = Returned::No;
  for (const auto &[value, position] : cut.values)
    if (auto argument = dyn_cast<BlockArgument>(value);
        argument && argument.getOwner() == &step.front())
      strongest = std::max(strongest, isReturned(step, argument, cut));
  return strongest;
}
} // namespace

std::optional<Cut> split::chooseBatch(const SplitPlan &plan, func::FuncOp step,
                                      const Estimate &estimate,
                                      const PlanOptions &options,
                                      double leastNs) {
  bool isFirst = plan.cuts.empty();
  std::optional<Cut> batch, perhaps;
  double most = isFirst ? 0 : leastNs, mostPerhaps = most;
  for (BlockArgument argument : step.getArguments()) {
    auto type = dyn_cast<RankedTensorType>(argument.getType());
    if (!type || !type.hasStaticShape() ||
        llvm::any_of(plan.cuts, [&](const Cut &cut) {
          return cut.values.contains(argument);
        }))
      continue;
    for (auto [dim, extent] : llvm::enumerate(type.getShape())) {
      if (extent < options.pieces ||
          (options.even && extent % options.pieces != 0) ||
          !isExtentOf(plan, extent))
        continue;
      Cut cut = followCut(argument, {unsigned(dim)},
                          evenPieces(extent, options.pieces), options, plan);
      double gain = isFirst ? estimate.savedNs(cut) : estimate.gainNs(cut);
      if (gain <= std::min(most, mostPerhaps))
        continue;
      Returned returned = isReturned(step, cut);
      if (returned == Returned::No && gain > most) {
        most = gain;
        batch = std::move(cut);
      } else if (returned == Returned::Perhaps && gain > mostPerhaps) {
        mostPerhaps = gain;
        perhaps = std::move(cut);
      }
    }
  }
  return batch ? std::move(batch) : std::move(perhaps);
}

LogicalResult split::refuseReplicas(func::FuncOp step, const Estimate &estimate,
                                    PlanOptions options) {
  int64_t pieces = options.pieces;
  options.even = false;
  options.pieces = 2; // It may be smaller than asked for.
  std::optional<Cut> uneven =
      chooseBatch(SplitPlan(), step, estimate, options, /*leastNs=*/0);
  if (!uneven || uneven->extent() % pieces == 0)
    return step.emitError("the step has no batch to cut in ")
           << pieces
           << " replicas: no dimension of an argument whose next value it does "
              "not return can be cut; name the batch's arguments (split)";
  int64_t extent = uneven->extent(), below = extent / pieces * pieces;
  InFlightDiagnostic diag =
      step.emitError("the step's batch, ")
      << describePlace(step, *uneven) << ", is of " << extent
      << ", which does not divide into " << pieces
      << " equal replicas: take one of "
      << (below > 0 ? std::to_string(below) + " or " : std::string())
      << below + pieces
      << ", or name the batch's arguments (split) if it is another";
  diag.attachNote(uneven->operations.front().first->getLoc())
      << "one of the operations on it";
  return diag;
}

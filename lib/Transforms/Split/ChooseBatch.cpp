//===- ChooseBatch.cpp - The batch that replicas share out ----------------===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "ChooseBatch.h"
#include "Baechi/Analysis/Program.h"
#include "Baechi/Transforms/Unroll/WriteTurns.h"
#include "Describe.h"
#include "Reshaped.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Interfaces/LoopLikeInterface.h"
#include "mlir/Transforms/RegionUtils.h"
#include <array>

using namespace mlir;
using namespace baechi;
using namespace baechi::split;

namespace {
/// Whether an argument is a parameter or other state, of which the step returns
/// the next value: its dimensions are no batch.
enum class Returned { No, Perhaps, Yes };

/// Of `params/w` and `result0/params/w`, as of what is donated and what is not,
/// the structure's own part is the same.
bool isNamedAfter(StringAttr argument, StringAttr result) {
  if (!argument || !result)
    return false;
  StringRef own = argument.getValue().split('/').second;
  StringRef name = result.getValue();
  return !own.empty() && name.ends_with(own) &&
         name.drop_back(own.size()).ends_with("/");
}

/// The argument whose next value result \p number is, as far as donation and
/// names tell.
std::optional<unsigned> argumentOf(func::FuncOp step, unsigned number) {
  std::optional<unsigned> named;
  for (BlockArgument argument : step.getArguments()) {
    unsigned position = argument.getArgNumber();
    auto by =
        step.getArgAttrOfType<IntegerAttr>(position, BaechiDialect::kUpdatedBy);
    if (by && by.getInt() == number)
      return position;
    if (!by && argument.getType() == step.getResultTypes()[number] &&
        isNamedAfter(
            step.getArgAttrOfType<StringAttr>(position, BaechiDialect::kName),
            step.getResultAttrOfType<StringAttr>(number, BaechiDialect::kName)))
      named = position;
  }
  return named;
}

/// Per result: the argument whose next value it is.
using Owners = SmallVector<std::optional<unsigned>>;

Owners ownersOfResults(func::FuncOp step) {
  Owners owners;
  for (unsigned number = 0; number < step.getNumResults(); ++number)
    owners.push_back(argumentOf(step, number));
  return owners;
}

Returned isReturned(func::FuncOp step, BlockArgument argument, const Cut &cut,
                    const Owners &owners) {
  Returned found = Returned::No;
  CutPosition position = cut.values.lookup(argument);
  for (auto [result, owner] :
       llvm::zip_equal(step.front().getTerminator()->getOperands(), owners)) {
    if (owner == argument.getArgNumber())
      return Returned::Yes;
    auto at = cut.values.find(result);
    if (!owner && result.getType() == argument.getType() &&
        at != cut.values.end() && at->second == position)
      found = Returned::Perhaps;
  }
  return found;
}

/// What a class runs through among the arguments, the likest to a batch first.
enum Likeness : unsigned {
  OfInputs,    ///< none comes back
  BesideState, ///< one does not, whose first dimension it is: the others are
               ///< state of the batch
  MaybeState,  ///< results are of the types of some
  OfState,     ///< parameters
};

Likeness likeness(func::FuncOp step, const Cut &cut, const Owners &owners) {
  Returned strongest = Returned::No;
  bool isFirstOfOne = false;
  for (const auto &[value, position] : cut.values) {
    auto argument = dyn_cast<BlockArgument>(value);
    if (!argument || argument.getOwner() != &step.front())
      continue;
    Returned returned = isReturned(step, argument, cut, owners);
    strongest = std::max(strongest, returned);
    isFirstOfOne |= returned == Returned::No && position == CutPosition();
  }
  if (strongest == Returned::No)
    return OfInputs;
  if (isFirstOfOne)
    return BesideState;
  return strongest == Returned::Perhaps ? MaybeState : OfState;
}
} // namespace

bool split::isOfState(func::FuncOp step, const Cut &cut) {
  return likeness(step, cut, ownersOfResults(step)) == OfState;
}

std::optional<Cut> split::chooseBatch(const SplitPlan &plan, func::FuncOp step,
                                      const Estimate &estimate,
                                      const PlanOptions &options,
                                      double leastNs) {
  bool isFirst = plan.cuts.empty();
  Owners owners = ownersOfResults(step);
  std::array<std::optional<Cut>, OfState> best;
  std::array<double, OfState> most;
  most.fill(isFirst ? 0 : leastNs);
  auto consider = [&](BlockArgument argument, CutPosition position,
                      int64_t extent) {
    if (extent < options.pieces ||
        (options.even && extent % options.pieces != 0) ||
        !isExtentOf(plan, extent))
      return;
    Cut cut = followCut(argument, position, evenPieces(extent, options.pieces),
                        options, plan);
    double gain = isFirst ? estimate.savedNs(cut) : estimate.gainNs(cut, plan);
    Likeness like = likeness(step, cut, owners);
    if (like == OfState || gain <= most[like])
      return;
    most[like] = gain;
    best[like] = std::move(cut);
  };
  // Parts of reshaped dimensions where no dimension is one as it is.
  for (bool reshaped : {false, true}) {
    for (BlockArgument argument : step.getArguments()) {
      auto type = dyn_cast<RankedTensorType>(argument.getType());
      if (!type || !type.hasStaticShape() ||
          llvm::any_of(plan.cuts, [&](const Cut &cut) {
            return cut.values.contains(argument);
          }))
        continue;
      for (auto [dim, extent] : llvm::enumerate(type.getShape()))
        if (!reshaped)
          consider(argument, {unsigned(dim)}, extent);
        else
          for (const ReshapedPart &part : reshapedParts(argument, dim))
            consider(argument, part.position, part.extent);
    }
    for (std::optional<Cut> &cut : best)
      if (cut)
        return std::move(cut);
  }
  return std::nullopt;
}

std::optional<LoopOverInput> split::findLoopOverInput(func::FuncOp step) {
  for (Operation &op : step.front()) {
    auto loop = dyn_cast<LoopLikeOpInterface>(op);
    if (!loop)
      continue;
    // What it begins with is its state, unless that stays as it is.
    SetVector<Value> read;
    getUsedValuesDefinedAbove(op.getRegions(), read);
    for (auto [start, state, next] :
         llvm::zip(loop.getInits(), loop.getRegionIterArgs(),
                   loop.getYieldedValues()))
      if (next == state)
        read.insert(start);
    for (Value value : read) {
      auto argument = dyn_cast<BlockArgument>(rootOf(value));
      if (argument && argument.getOwner() == &step.front() &&
          !step.getArgAttr(argument.getArgNumber(), BaechiDialect::kUpdatedBy))
        return LoopOverInput{&op, argument};
    }
  }
  return std::nullopt;
}

void split::noteLoop(InFlightDiagnostic &diag, func::FuncOp step,
                     const LoopOverInput &found) {
  unsigned number = found.input.getArgNumber();
  auto name = step.getArgAttrOfType<StringAttr>(number, BaechiDialect::kName);
  std::string argument = "argument " + std::to_string(number);
  if (name)
    argument += " ('" + name.str() + "')";
  std::string loop = nameOf(found.loop);
  diag << "; " << (loop.empty() ? "a loop" : "the loop '" + loop + "'")
       << " goes through " << argument << " and is one operator";
  if (isa<scf::ForOp, scf::WhileOp>(found.loop))
    if (std::string why = whyWhole(found.loop); !why.empty())
      diag << " (" << why << ")";
  diag.attachNote(found.loop->getLoc())
      << "this loop reads " << argument
      << " step by step, and its steps follow each other: where it goes "
         "through the batch, compute that at once (in JAX, vmap for scan)";
}

/// Says which arguments have a single row: a batch of one, maybe.
static void noteSingle(InFlightDiagnostic &diag, func::FuncOp step,
                       int64_t pieces) {
  for (BlockArgument argument : step.getArguments()) {
    auto type = dyn_cast<RankedTensorType>(argument.getType());
    unsigned number = argument.getArgNumber();
    if (!type || type.getRank() == 0 || type.getDimSize(0) != 1 ||
        step.getArgAttr(number, BaechiDialect::kUpdatedBy))
      continue;
    auto name = step.getArgAttrOfType<StringAttr>(number, BaechiDialect::kName);
    diag << ", or give a batch of at least " << pieces << " rows if "
         << (name ? "'" + name.str() + "'"
                  : "argument " + std::to_string(number))
         << ", of 1, is the batch";
    return;
  }
}

LogicalResult split::refuseReplicas(func::FuncOp step, const Estimate &estimate,
                                    PlanOptions options) {
  int64_t pieces = options.pieces;
  StringRef word = options.inParts ? "parts" : "replicas";
  options.even = false;
  options.pieces = 2; // It may be smaller than asked for.
  std::optional<Cut> uneven =
      chooseBatch(SplitPlan(), step, estimate, options, /*leastNs=*/0);
  if (!uneven || uneven->extent() % pieces == 0) {
    InFlightDiagnostic diag =
        step.emitError("the step has no batch to cut in ")
        << pieces << " " << word
        << ": no dimension of an argument whose next value it does not return "
           "can be cut; name the batch's arguments (split)";
    noteSingle(diag, step, pieces);
    // Most often where nothing can be cut: an example of the batch is a step of
    // a loop.
    if (std::optional<LoopOverInput> loop = findLoopOverInput(step))
      noteLoop(diag, step, *loop);
    return diag;
  }
  int64_t extent = uneven->extent(), below = extent / pieces * pieces;
  int64_t fewer = std::min(pieces, extent);
  while (extent % fewer != 0)
    --fewer;
  InFlightDiagnostic diag =
      step.emitError("the step's batch, ")
      << describePlace(step, *uneven) << ", is of " << extent
      << ", which does not divide into " << pieces << " equal " << word
      << ": take "
      << (options.inParts ? "parts=" + std::to_string(fewer) + ", a batch of "
                          : std::string("one of "))
      << (below > 0 ? std::to_string(below) + " or " : std::string())
      << below + pieces
      << ", or name the batch's arguments (split) if it is another";
  diag.attachNote(uneven->operations.front().first->getLoc())
      << "one of the operations on it";
  return diag;
}

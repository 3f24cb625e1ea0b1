//===- ChooseCuts.cpp - Classes that save time ----------------------------===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "ChooseCuts.h"
#include "ChooseBatch.h"
#include "LeastLost.h"
#include "Seeds.h"

using namespace mlir;
using namespace baechi;
using namespace baechi::split;

/// The heaviest operations that are not cut yet are looked at in each round.
static constexpr size_t kOperations = 8;
static constexpr unsigned kMostCuts = 512;
/// What pieces of a batch save at least, of what those of features do: some
/// other input of a step is not taken for it.
static constexpr double kLeastOfBatch = 0.5;

void split::commit(SplitPlan &plan, Cut cut, StringLiteral why) {
  cut.why = why;
  for (const auto &[op, how] : cut.operations)
    plan.cutOf[op] = plan.cuts.size();
  plan.cuts.push_back(std::move(cut));
}

namespace {
/// Where classes run that were looked at.
class Seen {
public:
  bool contains(const Seed &seed) const {
    auto found = positions.find(seed.value);
    return found != positions.end() &&
           llvm::is_contained(found->second, seed.position);
  }
  void add(const Cut &cut) {
    for (const auto &[value, position] : cut.values)
      positions[value].push_back(position);
  }

private:
  llvm::DenseMap<Value, SmallVector<CutPosition, 1>> positions;
};
} // namespace

/// The class that saves the most among those of the heaviest operations; adds
/// to \p savedNs what it saves.
static std::optional<Cut> chooseLargest(const SplitPlan &plan,
                                        const Estimate &estimate,
                                        const PlanOptions &options,
                                        double &savedNs) {
  std::optional<Cut> best;
  double most = estimate.leastGainNs();
  size_t looked = 0;
  Seen seen;
  for (Operation *op : estimate.heaviest()) {
    if (plan.isTaken(op))
      continue;
    SmallVector<Seed> seeds = seedsOf(op);
    if (seeds.empty())
      continue;
    if (++looked > kOperations)
      break;
    for (const Seed &seed : seeds) {
      if (seed.extent < options.pieces ||
          (options.even && seed.extent % options.pieces != 0) ||
          (options.chained && !isExtentOf(plan, seed.extent)) ||
          seen.contains(seed))
        continue;
      Cut cut =
          followCut(seed.value, seed.position,
                    evenPieces(seed.extent, options.pieces), options, plan);
      // What stays whole over links takes a while to find.
      if (!estimate.isMemoryShared()) {
        seen.add(cut);
        if (estimate.savedNs(cut) <= most)
          continue;
        estimate.keepBetterWhole(cut);
      }
      double gain = estimate.gainNs(cut, plan);
      if (gain > most) {
        most = gain;
        best = std::move(cut);
      }
    }
  }
  if (best)
    savedNs += most - estimate.waitedNs(*best);
  return best;
}

/// The batch, where it is to be cut in micro-batches instead of the first class
/// that was found, \p largest: features of a layer may save more, but are no
/// part of what a step is given.
static std::optional<Cut>
preferredBatch(const Cut &largest, const SplitPlan &plan, func::FuncOp step,
               const Estimate &estimate, const PlanOptions &options) {
  bool isFirst =
      llvm::all_of(plan.cuts, [](const Cut &cut) { return cut.isApart; });
  if (!isFirst || !isOfState(step, largest))
    return std::nullopt;
  std::optional<Cut> batch =
      chooseBatch(plan, step, estimate, options, /*leastNs=*/0);
  if (batch &&
      estimate.savedNs(*batch) < kLeastOfBatch * estimate.savedNs(largest))
    return std::nullopt;
  return batch;
}

void split::chooseCuts(SplitPlan &plan, func::FuncOp step,
                       const Estimate &estimate, const PlanOptions &options) {
  SplitPlan before = plan;
  double saved = 0;
  while (plan.cuts.size() < kMostCuts) {
    std::optional<Cut> best = chooseLargest(plan, estimate, options, saved);
    if (!best)
      break;
    std::optional<Cut> batch;
    if (options.chained)
      batch = preferredBatch(*best, plan, step, estimate, options);
    if (batch)
      commit(plan, std::move(*batch), kIsTheBatch);
    else
      commit(plan, std::move(*best), "it saves the most of what is left");
  }
  if (options.largestFirst || options.chained || !estimate.isMemoryShared())
    return;
  if (std::optional<SplitPlan> other =
          cutLeastLost(before, estimate, options, saved)) {
    plan = std::move(*other);
    plan.isLargestFirst = false;
  }
}

void split::cutAll(SplitPlan &plan, func::FuncOp step,
                   const PlanOptions &options) {
  for (auto [number, op] : llvm::enumerate(step.front().without_terminator())) {
    if (plan.isTaken(&op))
      continue;
    SmallVector<Seed> seeds = seedsOf(&op);
    for (size_t turn = 0; turn < seeds.size(); ++turn) {
      const Seed &seed = seeds[(number + turn) % seeds.size()];
      if (plan.isTaken(&op) || seed.extent < options.pieces)
        continue;
      commit(plan,
             followCut(seed.value, seed.position,
                       evenPieces(seed.extent, options.pieces), options, plan),
             "all that can be cut is");
    }
  }
}

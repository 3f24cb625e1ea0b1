//===- LeastLost.cpp - Classes that lose little ---------------------------===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "LeastLost.h"
#include "ChooseCuts.h"
#include "Seeds.h"

using namespace mlir;
using namespace baechi;
using namespace baechi::split;

/// Plans by what they begin with: how many, and of how many classes at most.
static constexpr size_t kStarts = 3;
static constexpr unsigned kMostCuts = 64;
/// Operations that are followed for all of them, times those of the step.
static constexpr size_t kMostFollowed = 10;
/// Classes that save less than this part of the largest come later, and shares
/// that differ by less are alike.
static constexpr double kLeastPart = 0.1, kAlike = 0.02;
/// What plans must save more, of the whole step's time: each is one program
/// more to compile.
static constexpr double kLeastBetter = 0.02;
/// Why they are cut.
static constexpr StringLiteral kLosesTheLeast =
    "it loses the least of what its pieces save";

namespace {
/// A class that could be cut next.
struct Proposal {
  Cut cut;
  double gainNs = 0, savedNs = 0;

  /// What is left of the time that its pieces save.
  double share() const { return gainNs / savedNs; }
};

/// The classes of the heaviest operations. Those that a cut does not touch stay
/// as they are after it.
class Proposals {
public:
  Proposals(const Estimate &estimate, const PlanOptions &options, size_t &left)
      : estimate(estimate), options(options), left(left) {}

  void update(const SplitPlan &plan) {
    llvm::erase_if(classes, [&](const Proposal &each) {
      return llvm::any_of(each.cut.operations, [&](const auto &entry) {
        return plan.isTaken(entry.first);
      });
    });
    seen.clear();
    for (Proposal &each : classes) {
      each.gainNs = gainNs(each.cut, plan);
      see(each.cut);
    }
    for (Operation *op : estimate.heaviest()) {
      if (!estimate.isHeavy(op))
        break;
      if (plan.isTaken(op))
        continue;
      for (const Seed &seed : seedsOf(op))
        if (left > 0)
          follow(seed, plan);
    }
  }

  /// Those that save enough to begin with, the least lost first; not the one
  /// that saves the most.
  std::vector<Proposal> starts() const {
    SmallVector<const Proposal *> found = worthwhile();
    std::vector<Proposal> starts;
    if (found.empty())
      return starts;
    found.erase(llvm::max_element(found, saves));
    llvm::stable_sort(found, [](const Proposal *a, const Proposal *b) {
      return a->share() > b->share();
    });
    for (const Proposal *each : ArrayRef(found).take_front(kStarts))
      starts.push_back(*each);
    return starts;
  }

  /// The largest of those that lose the least.
  const Proposal *next() const {
    SmallVector<const Proposal *> found = worthwhile();
    double best = 0;
    for (const Proposal *each : found)
      best = std::max(best, each->share());
    llvm::erase_if(found, [&](const Proposal *each) {
      return each->share() < best - kAlike;
    });
    return found.empty() ? nullptr : *llvm::max_element(found, saves);
  }

private:
  static bool saves(const Proposal *a, const Proposal *b) {
    return a->gainNs < b->gainNs;
  }

  SmallVector<const Proposal *> worthwhile() const {
    double most = 0;
    for (const Proposal &each : classes)
      most = std::max(most, each.gainNs);
    SmallVector<const Proposal *> found;
    for (const Proposal &each : classes)
      if (each.gainNs > estimate.leastGainNs() &&
          each.gainNs >= kLeastPart * most)
        found.push_back(&each);
    return found;
  }

  void follow(const Seed &seed, const SplitPlan &plan) {
    if (seed.extent < options.pieces ||
        (options.even && seed.extent % options.pieces != 0) ||
        llvm::is_contained(seen[seed.value], seed.position))
      return;
    Cut cut = followCut(seed.value, seed.position,
                        evenPieces(seed.extent, options.pieces), options, plan);
    see(cut);
    left -= std::min(left, cut.operations.size() + cut.whole.size());
    double gain = gainNs(cut, plan), saved = estimate.savedNs(cut);
    classes.push_back({std::move(cut), gain, saved});
  }

  double gainNs(const Cut &cut, const SplitPlan &plan) const {
    return estimate.gainNs(cut, plan) - estimate.waitedNs(cut);
  }

  void see(const Cut &cut) {
    for (const auto &[value, position] : cut.values)
      seen[value].push_back(position);
  }

  const Estimate &estimate;
  const PlanOptions &options;
  size_t &left; ///< operations that may be followed yet
  std::vector<Proposal> classes;
  llvm::DenseMap<Value, SmallVector<CutPosition, 2>> seen;
};
} // namespace

std::optional<SplitPlan> split::cutLeastLost(const SplitPlan &plan,
                                             const Estimate &estimate,
                                             const PlanOptions &options,
                                             double mostNs) {
  std::optional<SplitPlan> best;
  double least = mostNs + kLeastBetter * estimate.totalNs();
  // A step so short that pieces wait longer than they save is none for many
  // classes; and no plan saves more than all operations in pieces.
  if (mostNs <= 0 || least >= estimate.totalNs() * (1 - 1.0 / options.pieces))
    return best;
  size_t left = kMostFollowed * estimate.heaviest().size();
  Proposals first(estimate, options, left);
  first.update(plan);
  for (const Proposal &start : first.starts()) {
    SplitPlan other = plan;
    Proposals proposals = first;
    double saved = start.gainNs;
    commit(other, start.cut, kLosesTheLeast);
    while (other.cuts.size() < plan.cuts.size() + kMostCuts) {
      proposals.update(other);
      const Proposal *next = proposals.next();
      if (!next)
        break;
      saved += next->gainNs;
      commit(other, next->cut, kLosesTheLeast);
    }
    if (saved > least) {
      least = saved;
      best = std::move(other);
    }
  }
  return best;
}

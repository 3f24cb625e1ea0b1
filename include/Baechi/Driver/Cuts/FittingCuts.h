//===- FittingCuts.h - Cuts that make a step fit ----------------*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef BAECHI_DRIVER_CUTS_FITTINGCUTS_H
#define BAECHI_DRIVER_CUTS_FITTINGCUTS_H

#include "Baechi/Driver/Cuts/Outlines.h"
#include "llvm/ADT/StringSet.h"
#include <deque>
#include <limits>

namespace baechi {

/// Of two steps one is preferred for something else than its time where it is
/// predicted to take no longer than so many times the other.
inline constexpr double kAboutAsLong = 1.02;

/// A way to cut a step so that it fits, and what was made of it.
struct FittingCut {
  SplitChoice way;
  std::unique_ptr<HostCompiler> compiler;
  int64_t predictedNs = 0;
  /// Why it is not known to have the whole step's bits; empty: it is.
  std::string unproven;
};

/// Cuts of a step that does not fit so that it does: of what needs most, into
/// as few pieces as help. Whole, and in micro-batches, rules are added for the
/// operator that needs most by then, one after the other, until a plan fits.
class FittingCuts {
public:
  /// \p whole: the step as it is, cut as \p first says. Both outlive them.
  FittingCuts(const ModelForms &forms, HostCompiler &whole,
              const SplitChoice &first);

  /// What needs most of the whole step; nullopt: there is nothing to cut.
  const std::optional<Neediest> &neediest() const { return most; }
  /// The next cut that fits: with the whole step's bits before others, as far
  /// as it is about as fast. Nullopt: no other fits.
  std::optional<FittingCut> next();
  /// The next cut that fits, in the order in which they are tried, until
  /// enough operators were formed to say what would do.
  std::optional<FittingCut> nextTried();
  /// From now on next() gives the cut with the shortest step of all that are
  /// tried, until one is found that takes about \p enoughNs at most, or pieces
  /// of two thousand operators were formed. \p instead: the whole step fits,
  /// too, and its single operators are cut last; a cut is then of use that
  /// takes less than \p mostNs.
  void compareUntil(int64_t enoughNs, bool instead,
                    int64_t mostNs = std::numeric_limits<int64_t>::max());
  /// Where they are compared: those that are known to have the whole step's
  /// bits come first, as one that was not has others.
  void preferProven() { prefersProven = true; }

  /// Of the cuts that were not planned as their operators alone take too long
  /// the least that these take; nullopt: there is none.
  std::optional<int64_t> leastLongWorkNs() const { return leastTooLong; }

  /// A cut that does not fit.
  struct Unfit {
    SplitChoice way;
    Neediest most; ///< without its operation
  };
  /// Of those that were tried the one whose operators need least by themselves,
  /// where that is less than those of the whole step do.
  const std::optional<Unfit> &leanest() const { return leastUnfit; }

private:
  /// A way to cut the step, to which rules are added, each for so many pieces
  /// or more.
  struct Way {
    SplitChoice choice;
    int64_t fewest = 2;
  };
  /// In more pieces than let each operator fit by itself.
  static bool isLastResort(const Way &way) { return way.fewest > 2; }
  static std::vector<Way> waysToCut(const ModelForms &forms,
                                    const SplitChoice &first);

  /// What was seen of a way to cut, to which rules are added.
  struct Seen {
    int64_t fewest = 2;       ///< pieces of a rule
    int outlined = 0;         ///< further ways
    bool isExhausted = false; ///< no more of them are looked at
    /// What needs most where all is cut that is asked for by now, as far as
    /// outlines show.
    std::optional<Neediest> most;
  };

  /// Forms the next way; where a plan of it fits, it waits.
  void formNext();
  /// The model cut as \p fitting says, with rules added as they are needed;
  /// false where no plan of it fits. \p fewest: pieces of a rule.
  bool form(FittingCut &fitting, int64_t fewest);
  /// Cuts, in \p choice, the operator that needs \p neediest, too, so that less
  /// is needed; false: no rule that is tried helps. \p seen: of \p choice.
  bool addRule(SplitChoice &choice, const Neediest &neediest, Seen &seen);
  /// Operators that more rules or more pieces leave too large, by what they
  /// need before rules are added: the one that needs most after the last rule,
  /// and those that rules were added for until then.
  using Stuck = std::map<std::string, int64_t>;
  /// Whether the model cut as \p choice says, which needs \p start, has all of
  /// these of an earlier way, needing as much: that way's rules would be added
  /// to it, too, and help as little.
  bool isStuck(const SplitChoice &choice, const Neediest &start) const;
  void addStuck(const SplitChoice &choice, const Neediest &start,
                llvm::ArrayRef<std::string> path);
  /// Whether some of \p rules cut what \p op was formed of.
  bool hasRule(mlir::Operation *op, llvm::ArrayRef<std::string> rules) const;
  /// Whether earlier ways show that \p way does not fit.
  bool isInVain(const Way &way) const;
  /// Keeps what does not fit where it is the leanest.
  void keep(const SplitChoice &way, const Neediest &needs);
  /// Why the step cut by \p way is not known to have the whole one's bits, by
  /// how both are computed; empty: it is.
  std::string whyNotProven(const SplitChoice &way);
  /// The next one where they are compared.
  std::optional<FittingCut> shortest();

  const ModelForms &forms;
  Outlines outlines;
  HostCompiler &whole;
  const SplitChoice &first;
  std::optional<Neediest> most;
  std::optional<Cuttables> cuttables;
  std::vector<Way> ways;
  /// Of ways to which rules are added, and of others.
  std::vector<Stuck> stuck[2];
  /// More micro-batches need as much, with sums in order and without.
  bool moreAreInVain[2] = {false, false};
  /// An operator that is too large can be cut in no number of pieces in which
  /// the step needs less.
  bool rulesAreInVain = false;
  /// The modules that were formed and have no plan that fits.
  llvm::StringSet<> inVain;
  /// So many operators are formed before what is only of use, and not needed,
  /// is given up: a cut of a large step takes seconds to form and to plan.
  static constexpr size_t kMostOperators = 2000;
  size_t numFormed = 0;       ///< of the ways
  size_t operatorsFormed = 0; ///< of all modules that were
  /// Of all outlines: cuts of single operators, and micro-batches.
  size_t outlinedOperators[2] = {0, 0};
  std::deque<FittingCut> waiting;  ///< the best first
  std::optional<int64_t> enoughNs; ///< they are compared
  bool isInstead = false, prefersProven = false;
  int64_t mostNs = 0; ///< instead
  std::optional<int64_t> leastTooLong;
  std::optional<SumOrders> ofWhole; ///< once they are asked for
  std::optional<Unfit> leastUnfit;
};

/// What of a step can be cut; nullopt after an error.
std::optional<Cuttables> findCuttables(mlir::ModuleOp model);

} // namespace baechi

#endif // BAECHI_DRIVER_CUTS_FITTINGCUTS_H

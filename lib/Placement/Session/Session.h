//===- Session.h - One problem on its way to a placement ------*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// What `place` does with one problem: candidates, then rounds of search. The
/// state after a number of rounds depends on nothing else, so that whoever
/// makes more of them, or hands over what a weaker machine's session has found,
/// never gets a worse answer.
///
//===----------------------------------------------------------------------===//
#ifndef BAECHI_LIB_PLACEMENT_SESSION_H
#define BAECHI_LIB_PLACEMENT_SESSION_H

#include "Bounds/Bounds.h"
#include "Grouping/Coarsen.h"
#include "Model/Beside.h"
#include "Placers/Placers.h"
#include "Placers/Registry.h"
#include "Search/Rounds.h"
#include "Search/Search.h"
#include "Search/SmallSearch.h"
#include "Session/Contest.h"

#include <chrono>
#include <future>
#include <memory>

namespace baechi::placement::session {

/// Thrown within a call that is cancelled.
struct Cancelled {};

class Session {
public:
  /// The options' placer and grouping steps exist; \p problem has passed
  /// `check`. All three must outlive the session.
  /// \p explains: the error says what is missing in the memories.
  Session(const Problem &problem, const PlaceOptions &options,
          PlaceResult &result, bool explains)
      : problem(problem), options(options), result(result), explains(explains),
        model(problem),
        contest(problem, model, options.objective, result.candidates) {}

  /// \p other is of the same graph and devices, but for what links can do at a
  /// time, and outlives this: what fits the memories is found once.
  void shareMemory(const Session &other) { contest.shareMemory(other.contest); }
  /// \p other is of the same graph on a machine whose devices are all of the
  /// same kind, and outlives this: what does not depend on anything else is
  /// found once.
  void learnFrom(const Session &other) {
    alike = &other;
    contest.shareOrders(other.contest);
  }
  /// The lower bound. False when the result is complete: there is nothing to
  /// place, or a proof that nothing fits.
  bool open();
  /// Then the placer that was asked for and the other candidates. False when
  /// that is all: the result is complete.
  bool begin();
  /// Whether nothing better can be found, or nothing at all.
  bool isDone() const;
  /// Whether one more round may find something, and is worth it.
  bool goesOn() const { return !isDone() && !isIdle && !isNearlyDone(); }
  bool hasWinner() const { return contest.hasWinner(); }
  /// Few operators: the exact search takes part.
  bool isSmall() const { return search::isSmall(model); }
  /// Evaluations of an automatic budget, about.
  int64_t automaticEvaluations();
  /// One more round of search.
  void search(const search::Round &round);
  /// Of the best so far, by the objective; `never`: there is none.
  int64_t value() const { return contest.leading().value; }
  /// No placement is better.
  int64_t lowerBound() const { return result.lowerBoundNs; }
  /// Takes the answer of a session with the same graph on a machine that can do
  /// no more, whose devices have the numbers \p numberOf here.
  void takeOver(const std::string &name, const Session &weaker,
                const std::vector<int32_t> &numberOf);
  /// Nothing was found so far: packs by memory alone.
  const Assignment &pack();
  void lastResort();
  /// Verifies the best and completes the result.
  void finish();

  /// What follows is of this phase, anew or again; "": of none.
  void phase(const std::string &name);

private:
  bool isNearlyDone() const;
  bool hasFoundNothing(const search::Round &round) const;
  void group();
  void bound();
  void runPlacer(const placers::Placer &placer, const LpSolver *solver);
  void considerPieces();
  void considerLayers();
  void runOthers();
  void makeSearchModels();
  std::string noSingleDevice() const;
  void varyStarts(const search::Round &round);
  void improve(const search::Round &round);
  void improvePeriod(std::vector<Assignment> starts,
                     const search::SearchOptions &given);
  void improveSmall(const search::Round &round);
  void accept();
  search::SearchOptions searchOptions(const search::Round &round) const;
  std::vector<std::vector<Unit>> knownGroupings() const;
  /// On larger graphs other groupings than the one that was asked for, and
  /// what people write by hand, take too long.
  bool hasFewNodes() const {
    constexpr int32_t fewNodes = 50'000;
    return model.numNodes <= fewNodes;
  }
  /// Leaves less time for each candidate.
  bool hasManyUnits() const {
    constexpr int32_t fewUnits = 4000;
    return model.numUnits > fewUnits;
  }
  bool isLarge() const { return model.numNodes > manyNodes; }
  void beginBeside();
  void keepBound(const bounds::Bound &bound);

  const Problem &problem;
  const PlaceOptions &options;
  PlaceResult &result;
  bool explains;
  Model model;
  grouping::Coarsening coarsening;
  Model joined;                  ///< what the steps of grouping have joined
  const Model *coarse = nullptr; ///< that, or the model itself
  std::vector<placers::Level> levels; ///< others of a multilevel grouping
  Contest contest;
  const Session *alike = nullptr;
  std::unique_ptr<search::SearchModels> searched;
  // Of a large graph, what needs nothing of the others is found beside them.
  // After the model: the threads end first.
  std::future<std::unique_ptr<search::SearchModels>> searchedBeside;
  std::future<placers::EarliestStart> operatorsBeside;
  std::future<bounds::Bound> boundBeside;
  std::vector<std::vector<Unit>> groupings; ///< known ones
  bool haveVaried = false;
  bool isBettered = false;   ///< by a round of search
  bool isIdle = false;       ///< a large graph's search has found nothing
  bool anyUnfit = false;     ///< a placer found nothing within the memories
  bool allTried = false;     ///< every assignment, by the search
  bool isComplete = false;   ///< proven: nothing is better
  bool isImpossible = false; ///< proven: no placement is valid
  int64_t evaluations = 0, orders = 0, nodes = 0;
  int64_t takenOver = never;         ///< the value of what a weaker machine had
  std::optional<Assignment> packing; ///< by memory alone
  size_t currentPhase = 0;
  std::chrono::steady_clock::time_point phaseBegin;
};

} // namespace baechi::placement::session

#endif // BAECHI_LIB_PLACEMENT_SESSION_H

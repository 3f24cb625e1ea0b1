//===- Chain.h - An order as a chain of stages ------------------*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef BAECHI_LIB_PLACEMENT_RECOMPUTE_CHAIN_H
#define BAECHI_LIB_PLACEMENT_RECOMPUTE_CHAIN_H

#include "Recompute/Replay.h"

#include <array>

namespace baechi::placement::recompute {

/// A base order cut into stages: those before its turn may run again, what
/// comes after runs once. Stage s is the positions from cut[s] to cut[s + 1].
/// Once the order is at back[s], nothing that stage s or a later one has made
/// is read any more.
///
/// Tensors that may go and come again are loose. All others are there from when
/// they are made to when nothing, run again or not, reads them.
struct Chain {
  /// What is kept while all from a cut on runs.
  enum Keep : uint8_t {
    Checkpoint, ///< what that reads
    WithStage,  ///< and what the way back of the stage before the cut reads
  };
  static constexpr std::array<Keep, 2> keeps = {Checkpoint, WithStage};

  Chain(const RepeatGraph &graph, std::vector<int32_t> base, int32_t turn,
        int32_t mostStages);

  int32_t numStages() const { return static_cast<int32_t>(back.size()) - 1; }
  const std::vector<int32_t> &kept(int32_t at, Keep keep) const {
    return keptAt[keep][at];
  }
  /// The first stage from \p from on whose way back and those of all up to
  /// \p at read only what is kept, or was made before \p from.
  int32_t returnsTo(int32_t from, int32_t at, Keep keep) const;

  const RepeatGraph *graph;
  std::vector<int32_t> base;
  std::vector<int32_t> cut, back;
  std::vector<uint8_t> isLoose;   ///< per tensor
  std::vector<int32_t> stageOf;   ///< per tensor that is loose
  std::vector<int64_t> before;    ///< bytes that are not loose, per position
  std::vector<int64_t> whileRuns; ///< with its results that are not, each

private:
  void findUses();
  void findLoose();
  void findBack();
  void chooseCuts(int32_t mostStages);
  void findKept();
  void findMissing();
  void countOthers();

  int32_t turn;
  std::vector<int32_t> position;               ///< per operator
  std::vector<int32_t> lastForward;            ///< per tensor: read before turn
  std::vector<int32_t> firstBack, lastBack;    ///< per tensor: read after it
  std::vector<int32_t> backAt;                 ///< as `back`, per position
  std::vector<int32_t> readUntil;              ///< per tensor: the last cut
  std::vector<std::vector<int32_t>> keptAt[2]; ///< per cut: tensors
  /// Per cut and earlier stage: the last stage that made what its way back
  /// reads and is not kept; -1: there is none.
  std::vector<std::vector<int32_t>> missing[2];
};

/// Where \p base may turn from what runs again to what does not: where most
/// bytes wait for longest.
std::vector<int32_t> turnsOf(const RepeatGraph &graph,
                             std::span<const int32_t> base);

/// The dynamic program over the stages of a chain.
class ChainTable {
public:
  /// Of what holds less than \p mostBytes.
  ChainTable(Chain chain, int64_t mostBytes);

  /// Orders with ever less time of repeated runs and ever more bytes. These are
  /// no fewer than the order really holds.
  int32_t numPoints() const;
  int64_t bytesOf(int32_t point) const;
  int64_t againNsOf(int32_t point) const;
  std::vector<int32_t> runsOf(int32_t point) const;

private:
  /// How the stages from one to another run, and run back.
  struct Point {
    int64_t bytes = 0; ///< beside what is kept of earlier stages
    int64_t ns = 0;    ///< of repeated runs
    int32_t at = 0;    ///< the cut where something is kept
    int32_t to = 0;    ///< the stage that the way back from there gets to
    int32_t right = 0, left = 0; ///< points of what comes before and after
    Chain::Keep keep = Chain::Checkpoint;
  };
  using Front = std::vector<Point>;
  class Builder;

  size_t number(int32_t from, int32_t to) const {
    return static_cast<size_t>(from) * (chain.numStages() + 1) + to;
  }

  Chain chain;
  std::vector<Front> fronts; ///< per pair of stages
};

/// The operators that run again from stage \p from to the cut \p at, where
/// what is made before is there and \p keep is wanted: in the base's order.
std::vector<int32_t> runsAgain(const Chain &chain, int32_t from, int32_t at,
                               Chain::Keep keep);

} // namespace baechi::placement::recompute

#endif // BAECHI_LIB_PLACEMENT_RECOMPUTE_CHAIN_H

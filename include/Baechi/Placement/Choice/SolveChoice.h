//===- SolveChoice.h - Pairwise choices under memory over time --*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// The pairwise choice program: every node takes one of its strategies, so that
/// the costs of nodes and of pairs of neighbours add up to the least, and at no
/// time the bytes of the nodes that are alive exceed a limit.
///
/// It is what choosing how to split the operators of a step amounts to, where a
/// node is a segment that is split in one way, and the problem of the contest
/// on intra-operator parallelism of ASPLOS 2025, whose files parseChoiceProgram
/// reads.
///
//===----------------------------------------------------------------------===//
#ifndef BAECHI_PLACEMENT_CHOICE_SOLVECHOICE_H
#define BAECHI_PLACEMENT_CHOICE_SOLVECHOICE_H

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace baechi::placement {

/// A cost from here on forbids what it stands at.
constexpr int64_t infiniteCost = 1'000'000'000'000'000'000;

/// A sum of costs or bytes, which 64 bits may not hold.
using WideSum = __int128;

/// One way to do a node.
struct ChoiceStrategy {
  int64_t cost = 0;  ///< at least 0; infiniteCost or more forbids it
  int64_t usage = 0; ///< bytes while the node is alive, at least 0
};

/// Alive at the times begin <= t < end; never where they are equal.
struct ChoiceNode {
  int64_t begin = 0;
  int64_t end = 0;
  std::vector<ChoiceStrategy> strategies;
};

/// What the strategies of two nodes cost together. Edges between the same nodes
/// add up; one from a node to itself counts its diagonal.
struct ChoiceEdge {
  int32_t first = 0;
  int32_t second = 0;
  /// Row-major: the cost of strategies (r, s) is at r * strategies of the
  /// second
  /// + s. At least 0; infiniteCost or more forbids the pair.
  std::vector<int64_t> costs;
};

struct ChoiceProgram {
  std::string name;
  std::vector<ChoiceNode> nodes;
  std::vector<ChoiceEdge> edges;
  std::optional<int64_t> usageLimit; ///< bytes at every time; none: no limit
};

/// The strategy of each node.
using Choice = std::vector<int32_t>;

/// What a choice amounts to.
struct ChoiceValue {
  WideSum cost = 0;
  bool isForbidden = false; ///< some cost of it is infinite
  WideSum peak = 0;         ///< bytes at the fullest time
  int64_t peakTime = 0;     ///< the first such time
  bool fits = true;         ///< the peak is within the limit

  bool isFeasible() const { return fits && !isForbidden; }
};

/// How long to look. The same program, seed and work give the same answer,
/// unless seconds or the caller end the search.
struct ChoiceOptions {
  uint64_t seed = 1;
  /// Entries of tables to look at (a core does some 10^9 a second); 0 stands
  /// for an amount by the size of the program where no seconds are given, and
  /// else for no end.
  uint64_t work = 0;
  double seconds = 0;              ///< 0: only the work counts
  std::function<bool()> cancelled; ///< asked often; true ends the search
  /// Told of each better choice.
  std::function<void(WideSum cost, double seconds)> improved;
};

enum class ChoiceStatus {
  Optimal,    ///< the cost is the bound
  Feasible,   ///< a choice, and no proof that there is none better
  NotFound,   ///< none was found, and no proof that there is none
  Infeasible, ///< proven: there is none
};

struct ChoiceResult {
  ChoiceStatus status = ChoiceStatus::NotFound;
  Choice choice;      ///< empty where there is none
  ChoiceValue value;  ///< of the choice, by evaluateChoice
  WideSum bound = 0;  ///< no feasible choice costs less
  std::string reason; ///< why there is none, as a sentence without a period
  uint64_t work = 0;  ///< spent
};

/// What is wrong with \p program, with the place and the mend; empty if
/// nothing.
std::string checkChoiceProgram(const ChoiceProgram &program);

/// What is wrong with \p choice as one of a valid program; empty if nothing.
std::string checkChoice(const ChoiceProgram &program, const Choice &choice);

/// Adds up a valid choice, independently of the solver.
ChoiceValue evaluateChoice(const ChoiceProgram &program, const Choice &choice);

/// Looks for the cheapest feasible choice of a valid program.
ChoiceResult solveChoice(const ChoiceProgram &program,
                         const ChoiceOptions &options = {});

/// Reads the contest's JSON; returns an error, empty if none, in which \p name
/// stands for the text. What it read has passed checkChoiceProgram.
std::string parseChoiceProgram(std::string_view text, const std::string &name,
                               ChoiceProgram &program);

/// In decimals.
std::string formatWideSum(WideSum value);

} // namespace baechi::placement

#endif // BAECHI_PLACEMENT_CHOICE_SOLVECHOICE_H

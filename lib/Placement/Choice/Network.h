//===- Network.h - A choice program while it shrinks ------------*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// The program as a graph of tables that exact steps make smaller. Every step
/// is noted, so that a choice of what is left becomes one of the whole.
///
/// Costs are doubles here: integers up to 2^53 are exact, and the answer is
/// added up in 128 bits by evaluateChoice.
///
//===----------------------------------------------------------------------===//
#ifndef BAECHI_LIB_PLACEMENT_CHOICE_NETWORK_H
#define BAECHI_LIB_PLACEMENT_CHOICE_NETWORK_H

#include "Baechi/Placement/Choice/SolveChoice.h"

namespace baechi::placement::choice {

/// Stands for an infinite cost; finite ones do not come near it, and sums of it
/// stay numbers.
constexpr double forbidden = 1e30;
/// Costs from here on have a forbidden one in them.
constexpr double anyForbidden = 1e29;

inline bool isForbidden(double cost) { return cost >= anyForbidden; }

/// Bytes that a node's strategies hold in the slots of [begin, end).
struct Member {
  int32_t begin;
  int32_t end;
  std::vector<double> usage; ///< by strategy
};

/// A node with those that were merged into it.
struct Node {
  std::vector<double> cost; ///< by strategy
  std::vector<Member> members;
  std::vector<int32_t> edges;
  bool isGone = false;

  size_t size() const { return cost.size(); }
};

/// The table of two nodes; none where it is gone.
struct Edge {
  int32_t first = -1;
  int32_t second = -1;
  std::vector<double> table; ///< row-major, a row for a strategy of the first

  int32_t other(int32_t node) const { return node == first ? second : first; }
  bool isGone() const { return first < 0; }
};

/// How to undo a step: where node's strategy comes from.
struct Step {
  enum class Kind {
    Keep,   ///< strategies were dropped: map[s] is its former number
    Follow, ///< node takes map[strategy of `by`]
    Best,   ///< node takes the strategy that is cheapest beside its neighbours
  };
  Kind kind;
  int32_t node;
  int32_t by = -1;
  std::vector<int32_t> map;
  std::vector<double> cost;
  std::vector<Edge> edges;
};

class Network {
public:
  /// Takes what \p program says; infinite costs become `forbidden`.
  explicit Network(const ChoiceProgram &program);

  std::vector<Node> nodes;
  std::vector<Edge> edges;
  std::vector<Step> steps;
  /// Bytes left in each slot, a stretch of time, for what the members hold;
  /// what every choice holds is taken off already. Empty without a limit.
  std::vector<double> capacity;
  std::vector<int64_t> slotTimes; ///< a time of each slot
  double constant = 0; ///< cost of nodes that are gone without a neighbour
  /// Entries of tables that were looked at.
  uint64_t work = 0;

  /// The entry of an edge at a strategy of \p node and one of its other end.
  double at(const Edge &edge, int32_t node, int32_t own, int32_t other) const {
    size_t columns = nodes[edge.second].size();
    return node == edge.first ? edge.table[own * columns + other]
                              : edge.table[other * columns + own];
  }
  /// The edge between two nodes; -1 if there is none.
  int32_t find(int32_t a, int32_t b) const;
  /// Adds a table whose rows are of \p a to what there is between the two.
  void add(int32_t a, int32_t b, std::vector<double> table);
  void remove(int32_t edge);
  /// Keeps some strategies of a node.
  void keep(int32_t node, const std::vector<int32_t> &kept);
  /// Takes a node out whose strategy follows from another's.
  void follow(int32_t node, int32_t by, std::vector<int32_t> map);
  /// Takes a node out that has no edges and one strategy.
  void settle(int32_t node);
  /// Takes a node of at most two neighbours out whose usage no longer matters.
  void eliminate(int32_t node);

  /// Turns a choice of what is left, by node, into one of the whole program.
  void undo(Choice &choice) const;

private:
  void addMembers(const ChoiceProgram &program);
  std::vector<double> takeTransposed(int32_t edge);
};

/// Why a network has no feasible choice; empty if that is not known.
using Refusal = std::string;

/// Drops strategies without a finite partner at some neighbour, until all have
/// one (arc consistency; Mackworth 1977).
Refusal dropInconsistent(Network &network);

/// Takes tables out that are sums of a cost for each end's strategies, and
/// nodes of one strategy. Returns how many.
size_t dropSeparable(Network &network);

/// Leaves slots out that no choice fills, or that are full only when another
/// one is, and strategies that need more than there is.
Refusal tightenSlots(Network &network);

/// All of it, until nothing changes any more.
Refusal shrink(Network &network);

/// Takes nodes out whose strategy another one decides: all but one of each row
/// of a table are forbidden, or a leaf's best strategy is best in bytes, too.
/// Returns how many.
size_t mergeFunctional(Network &network);

/// Takes nodes of at most two neighbours out that have no members (R0, R1 and
/// R2 of the partitioned boolean quadratic problem; Scholz and Eckstein 2002).
size_t eliminateFree(Network &network);

/// Drops strategies that another one of the node beats whatever the neighbours
/// do, in cost and in bytes. Returns how many.
size_t dropDominated(Network &network);

} // namespace baechi::placement::choice

#endif // BAECHI_LIB_PLACEMENT_CHOICE_NETWORK_H

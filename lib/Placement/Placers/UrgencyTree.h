//===- UrgencyTree.h - The most urgent of the shortest ----------*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef BAECHI_LIB_PLACEMENT_URGENCYTREE_H
#define BAECHI_LIB_PLACEMENT_URGENCYTREE_H

#include <cstdint>
#include <tuple>
#include <vector>

namespace baechi::placement::placers {

/// Nodes by length, which knows the most urgent of all up to a given length: a
/// treap (Aragon & Seidel, "Randomized search trees", 1989) that keeps the
/// most urgent below every item. The priorities are a hash of the node, so that
/// the same input gives the same tree. Logarithmic in its size.
class UrgencyTree {
public:
  struct Item {
    int64_t length;
    int64_t urgency;
    int32_t node;
    bool operator<(const Item &other) const {
      return std::tuple(length, -urgency, node) <
             std::tuple(other.length, -other.urgency, other.node);
    }
    bool moreUrgent(const Item &other) const {
      return std::tuple(-urgency, node) <
             std::tuple(-other.urgency, other.node);
    }
  };

  bool empty() const { return root < 0; }
  void insert(const Item &item);
  /// Removes \p item, which must be there.
  void erase(const Item &item);
  /// The shortest; of equal length the most urgent, then the smallest node.
  const Item &shortest() const { return slots[first].item; }
  /// The most urgent with at most \p length, then the smallest node; nullptr
  /// when there is none.
  const Item *mostUrgent(int64_t length) const;

private:
  using Index = int32_t; ///< into `slots`; < 0: none
  struct Slot {
    Item item;
    Item urgent; ///< the most urgent below, itself included
    uint32_t priority;
    Index left, right;
  };

  void update(Index at);
  /// Those before \p item, and the others.
  std::pair<Index, Index> split(Index at, const Item &item);
  Index merge(Index a, Index b);
  Index insert(Index at, Index added);
  Index erase(Index at, const Item &item);

  Index root = -1;
  Index first = -1; ///< the shortest
  std::vector<Slot> slots;
  std::vector<Index> unused;
};

} // namespace baechi::placement::placers

#endif // BAECHI_LIB_PLACEMENT_URGENCYTREE_H

//===- UrgencyTree.h - The most urgent of the shortest ----------*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef BAECHI_LIB_PLACEMENT_URGENCYTREE_H
#define BAECHI_LIB_PLACEMENT_URGENCYTREE_H

#include <array>
#include <cstdint>
#include <tuple>
#include <utility>
#include <vector>

namespace baechi::placement::placers {

/// Nodes by length, which knows the most urgent of all up to a given length: a
/// B+ tree (Comer, "The ubiquitous B-tree", 1979) whose inner nodes keep the
/// most urgent below each child. Wide nodes, because looking at many things
/// that lie together is faster than at few that do not. What is taken out
/// leaves its place empty; nodes go with their last item. Logarithmic in the
/// items that were put in.
class UrgencyTree {
public:
  struct Item {
    int64_t length;
    int32_t rank; ///< of its node: 0 for the most urgent of all
    int32_t node = 0;
    bool operator<(const Item &other) const {
      return std::tie(length, rank) < std::tie(other.length, other.rank);
    }
    bool operator==(const Item &other) const = default;
  };

  bool empty() const { return size == 0; }
  /// Does nothing where \p item is there.
  void insert(const Item &item);
  /// Removes \p item, which must be there.
  void erase(const Item &item);
  /// The shortest; of equal length the most urgent.
  const Item &shortest() const { return first; }
  /// The most urgent with at most \p length; rank -1: there is none.
  Item mostUrgent(int64_t length) const;

private:
  using Index = int32_t;
  static constexpr int32_t capacity = 32;
  struct Leaf {
    int32_t count = 0;
    std::array<Item, capacity> items;
    Item urgent; ///< the most urgent of them
  };
  struct Inner {
    int32_t count = 0;
    std::array<Item, capacity> least; ///< not above any item of the child
    std::array<Item, capacity> urgent;
    std::array<Index, capacity> child;
  };
  /// What a node that was too full gave away; child -1: nothing.
  struct Split {
    Item least;
    Index child = -1;
  };

  static int32_t childFor(const Inner &node, const Item &item);
  void fetch(Index leaf) const;
  Split insertInLeaf(Index at, const Item &item);
  Split insertBelow(Index at, int32_t level, const Item &item);
  Split addChild(Index at, int32_t position, const Split &added, int32_t level);
  bool eraseInLeaf(Index at, const Item &item);
  bool eraseBelow(Index at, int32_t level, const Item &item);
  Item urgentOf(Index at, int32_t level) const;
  static Item mostUrgentOf(const Item *items, int32_t count);
  void findFirst();

  std::vector<Leaf> leaves;
  std::vector<Inner> inners;
  std::vector<Index> unusedLeaves, unusedInners;
  Index root = -1;
  int32_t levels = 0; ///< of inner nodes above the leaves
  int64_t size = 0;
  Item first;
};

} // namespace baechi::placement::placers

#endif // BAECHI_LIB_PLACEMENT_URGENCYTREE_H

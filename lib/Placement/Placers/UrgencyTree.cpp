//===- UrgencyTree.cpp - The most urgent of the shortest --------*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Placers/UrgencyTree.h"

#include <algorithm>

using namespace baechi::placement;
using namespace baechi::placement::placers;

namespace {

/// Makes room at \p position.
template <typename T, size_t N>
void shiftUp(std::array<T, N> &items, int32_t position, int32_t count) {
  std::copy_backward(items.begin() + position, items.begin() + count,
                     items.begin() + count + 1);
}

template <typename T, size_t N>
void shiftDown(std::array<T, N> &items, int32_t position, int32_t count) {
  std::copy(items.begin() + position + 1, items.begin() + count,
            items.begin() + position);
}

/// An empty node, one that is of no more use if there is.
template <typename Node>
int32_t newNode(std::vector<Node> &nodes, std::vector<int32_t> &unused) {
  if (unused.empty()) {
    nodes.emplace_back();
    return static_cast<int32_t>(nodes.size() - 1);
  }
  int32_t at = unused.back();
  unused.pop_back();
  nodes[at].count = 0;
  return at;
}

} // namespace

UrgencyTree::Item UrgencyTree::mostUrgentOf(const Item *items, int32_t count) {
  return *std::min_element(
      items, items + count,
      [](const Item &a, const Item &b) { return a.rank < b.rank; });
}

UrgencyTree::Item UrgencyTree::urgentOf(Index at, int32_t level) const {
  return level == 0 ? leaves[at].urgent
                    : mostUrgentOf(inners[at].urgent.data(), inners[at].count);
}

/// The last child that may hold \p item.
int32_t UrgencyTree::childFor(const Inner &node, const Item &item) {
  auto end = node.least.begin() + node.count;
  auto after = std::upper_bound(node.least.begin(), end, item);
  return std::max<int32_t>(0, static_cast<int32_t>(after - node.least.begin()) -
                                  1);
}

/// All lines of a leaf at once: a search would ask for one after the other.
void UrgencyTree::fetch(Index leaf) const {
  constexpr size_t line = 64;
  const auto *begin = reinterpret_cast<const char *>(&leaves[leaf]);
  for (size_t at = 0; at < sizeof(Leaf); at += line)
    __builtin_prefetch(begin + at, /*rw=*/1);
}

UrgencyTree::Split UrgencyTree::insertInLeaf(Index at, const Item &item) {
  Split split;
  Index into = at;
  if (leaves[at].count == capacity) {
    split.child = newNode(leaves, unusedLeaves);
    Leaf &full = leaves[at], &upper = leaves[split.child];
    full.count = upper.count = capacity / 2;
    std::copy_n(full.items.begin() + full.count, upper.count,
                upper.items.begin());
    full.urgent = mostUrgentOf(full.items.data(), full.count);
    upper.urgent = mostUrgentOf(upper.items.data(), upper.count);
    split.least = upper.items[0];
    if (!(item < split.least))
      into = split.child;
  }
  Leaf &leaf = leaves[into];
  auto end = leaf.items.begin() + leaf.count;
  auto *next = std::lower_bound(leaf.items.begin(), end, item);
  if (next != end && *next == item)
    return split;
  ++size;
  auto position = static_cast<int32_t>(next - leaf.items.begin());
  shiftUp(leaf.items, position, leaf.count);
  leaf.items[position] = item;
  if (++leaf.count == 1 || item.rank < leaf.urgent.rank)
    leaf.urgent = item;
  return split;
}

UrgencyTree::Split UrgencyTree::addChild(Index at, int32_t position,
                                         const Split &added, int32_t level) {
  Split split;
  Index into = at;
  if (inners[at].count == capacity) {
    split.child = newNode(inners, unusedInners);
    Inner &full = inners[at], &upper = inners[split.child];
    full.count = upper.count = capacity / 2;
    std::copy_n(full.least.begin() + full.count, upper.count,
                upper.least.begin());
    std::copy_n(full.urgent.begin() + full.count, upper.count,
                upper.urgent.begin());
    std::copy_n(full.child.begin() + full.count, upper.count,
                upper.child.begin());
    split.least = upper.least[0];
    if (position > full.count) {
      into = split.child;
      position -= full.count;
    }
  }
  Inner &node = inners[into];
  shiftUp(node.least, position, node.count);
  shiftUp(node.urgent, position, node.count);
  shiftUp(node.child, position, node.count);
  ++node.count;
  node.least[position] = added.least;
  node.urgent[position] = urgentOf(added.child, level - 1);
  node.child[position] = added.child;
  return split;
}

UrgencyTree::Split UrgencyTree::insertBelow(Index at, int32_t level,
                                            const Item &item) {
  if (level == 0)
    return insertInLeaf(at, item);
  int32_t k = childFor(inners[at], item);
  Index child = inners[at].child[k];
  if (level == 1)
    fetch(child);
  Split split = insertBelow(child, level - 1, item);
  Inner &node = inners[at];
  node.least[k] = std::min(node.least[k], item);
  if (split.child < 0) {
    if (item.rank < node.urgent[k].rank)
      node.urgent[k] = item;
    return {};
  }
  node.urgent[k] = urgentOf(child, level - 1);
  return addChild(at, k + 1, split, level);
}

void UrgencyTree::insert(const Item &item) {
  if (root < 0) {
    root = newNode(leaves, unusedLeaves);
    levels = 0;
  }
  if (Split split = insertBelow(root, levels, item); split.child >= 0) {
    Index above = newNode(inners, unusedInners);
    Inner &node = inners[above];
    node.count = 2;
    node.child = {root, split.child};
    // Nothing is below the least of all.
    node.least = {std::min(first, item), split.least};
    for (int32_t k : {0, 1})
      node.urgent[k] = urgentOf(node.child[k], levels);
    root = above;
    ++levels;
  }
  if (size == 1 || item < first)
    first = item;
}

/// True when the leaf is empty then.
bool UrgencyTree::eraseInLeaf(Index at, const Item &item) {
  Leaf &leaf = leaves[at];
  auto end = leaf.items.begin() + leaf.count;
  auto position = static_cast<int32_t>(
      std::lower_bound(leaf.items.begin(), end, item) - leaf.items.begin());
  shiftDown(leaf.items, position, leaf.count);
  if (--leaf.count == 0) {
    unusedLeaves.push_back(at);
    return true;
  }
  if (item.rank == leaf.urgent.rank)
    leaf.urgent = mostUrgentOf(leaf.items.data(), leaf.count);
  return false;
}

bool UrgencyTree::eraseBelow(Index at, int32_t level, const Item &item) {
  if (level == 0)
    return eraseInLeaf(at, item);
  Inner &node = inners[at];
  int32_t k = childFor(node, item);
  if (eraseBelow(node.child[k], level - 1, item)) {
    shiftDown(node.least, k, node.count);
    shiftDown(node.urgent, k, node.count);
    shiftDown(node.child, k, node.count);
    if (--node.count > 0)
      return false;
    unusedInners.push_back(at);
    return true;
  }
  if (node.urgent[k].rank == item.rank)
    node.urgent[k] = urgentOf(node.child[k], level - 1);
  return false;
}

void UrgencyTree::findFirst() {
  Index at = root;
  for (int32_t level = levels; level > 0; --level)
    at = inners[at].child[0];
  first = leaves[at].items[0];
}

void UrgencyTree::erase(const Item &item) {
  --size;
  if (eraseBelow(root, levels, item))
    root = -1;
  else if (item == first)
    findFirst();
}

UrgencyTree::Item UrgencyTree::mostUrgent(int64_t length) const {
  Item best{0, -1};
  if (empty() || first.length > length)
    return best;
  auto consider = [&](const Item &item) {
    if (best.rank < 0 || item.rank < best.rank)
      best = item;
  };
  Index at = root;
  for (int32_t level = levels; level > 0; --level) {
    const Inner &node = inners[at];
    int32_t k = 0;
    // All of a child is short enough where the next one begins so.
    while (k + 1 < node.count && node.least[k + 1].length <= length)
      consider(node.urgent[k++]);
    at = node.child[k];
  }
  const Leaf &leaf = leaves[at];
  if (leaf.items[leaf.count - 1].length <= length)
    consider(leaf.urgent);
  else
    for (int32_t k = 0; leaf.items[k].length <= length; ++k)
      consider(leaf.items[k]);
  return best;
}

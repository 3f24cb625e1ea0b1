//===- UrgencyTree.cpp - The most urgent of the shortest --------*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Placers/UrgencyTree.h"

using namespace baechi::placement;
using namespace baechi::placement::placers;

namespace {

/// The finalizer of splitmix64 (Steele, Lea & Flood, "Fast splittable
/// pseudorandom number generators", 2014).
uint32_t hash(int32_t node) {
  uint64_t z = (static_cast<uint64_t>(node) + 1) * 0x9E3779B97F4A7C15ull;
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9ull;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EBull;
  return static_cast<uint32_t>(z >> 32);
}

} // namespace

void UrgencyTree::update(Index at) {
  Slot &slot = slots[at];
  slot.urgent = slot.item;
  for (Index child : {slot.left, slot.right})
    if (child >= 0 && slots[child].urgent.moreUrgent(slot.urgent))
      slot.urgent = slots[child].urgent;
}

std::pair<UrgencyTree::Index, UrgencyTree::Index>
UrgencyTree::split(Index at, const Item &item) {
  if (at < 0)
    return {-1, -1};
  if (slots[at].item < item) {
    auto [before, after] = split(slots[at].right, item);
    slots[at].right = before;
    update(at);
    return {at, after};
  }
  auto [before, after] = split(slots[at].left, item);
  slots[at].left = after;
  update(at);
  return {before, at};
}

UrgencyTree::Index UrgencyTree::merge(Index a, Index b) {
  if (a < 0 || b < 0)
    return a < 0 ? b : a;
  if (slots[a].priority > slots[b].priority) {
    slots[a].right = merge(slots[a].right, b);
    update(a);
    return a;
  }
  slots[b].left = merge(a, slots[b].left);
  update(b);
  return b;
}

UrgencyTree::Index UrgencyTree::insert(Index at, Index added) {
  const Item &item = slots[added].item;
  if (at < 0)
    return added;
  if (slots[added].priority > slots[at].priority) {
    auto [before, after] = split(at, item);
    slots[added].left = before;
    slots[added].right = after;
    update(added);
    return added;
  }
  Index &child = item < slots[at].item ? slots[at].left : slots[at].right;
  child = insert(child, added);
  if (item.moreUrgent(slots[at].urgent))
    slots[at].urgent = item;
  return at;
}

UrgencyTree::Index UrgencyTree::erase(Index at, const Item &item) {
  if (!(slots[at].item < item) && !(item < slots[at].item)) {
    unused.push_back(at);
    return merge(slots[at].left, slots[at].right);
  }
  Index &child = item < slots[at].item ? slots[at].left : slots[at].right;
  child = erase(child, item);
  if (!item.moreUrgent(slots[at].urgent) && !slots[at].urgent.moreUrgent(item))
    update(at);
  return at;
}

void UrgencyTree::insert(const Item &item) {
  auto added = static_cast<Index>(slots.size());
  if (unused.empty()) {
    slots.emplace_back();
  } else {
    added = unused.back();
    unused.pop_back();
  }
  slots[added] = {item, item, hash(item.node), -1, -1};
  if (first < 0 || item < slots[first].item)
    first = added;
  root = insert(root, added);
}

void UrgencyTree::erase(const Item &item) {
  bool wasFirst = !(shortest() < item);
  root = erase(root, item);
  if (!wasFirst)
    return;
  first = root;
  while (first >= 0 && slots[first].left >= 0)
    first = slots[first].left;
}

const UrgencyTree::Item *UrgencyTree::mostUrgent(int64_t length) const {
  const Item *best = nullptr;
  if (empty() || shortest().length > length)
    return best;
  auto consider = [&](const Item &item) {
    if (!best || item.moreUrgent(*best))
      best = &item;
  };
  for (Index at = root; at >= 0;) {
    const Slot &slot = slots[at];
    if (slot.item.length > length) {
      at = slot.left;
      continue;
    }
    consider(slot.item);
    if (slot.left >= 0)
      consider(slots[slot.left].urgent);
    at = slot.right;
  }
  return best;
}

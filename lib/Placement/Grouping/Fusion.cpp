//===- Fusion.cpp - Contraction without cycles ------------------*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Grouping/Grouping.h"

#include <algorithm>
#include <memory_resource>
#include <optional>
#include <utility>

using namespace baechi::placement;
using namespace baechi::placement::grouping;

namespace {

/// How many nodes \p forEach visits.
template <typename ForEach> size_t countOf(ForEach forEach) {
  size_t count = 0;
  forEach([&](int32_t) { ++count; });
  return count;
}

class Fuser {
public:
  Fuser(const Model &model, const std::vector<Unit> &unitOf, double delayShare);
  bool contract(int32_t a, int32_t b);
  void run();
  void write(Coarsening &coarsening) {
    coarsening.node = sets.number(coarsening.numNodes);
  }

private:
  /// The nodes before or behind one, each once and without itself when it was
  /// put in order. Since then others may have been contracted into one or into
  /// the node itself.
  struct Neighbours {
    explicit Neighbours(std::pmr::memory_resource *memory) : list(memory) {}
    std::pmr::vector<int32_t> list;
    int32_t distinct = 0;   ///< when it was put in order,
    int32_t contracted = 0; ///< after so many contractions
  };

  bool delays(int32_t a, int32_t b);
  bool isOnly(Neighbours &of, int32_t self, int32_t node);
  void join(Neighbours &into, Neighbours &from, int32_t merged);
  bool search(int32_t from, int32_t target, bool forward,
              std::vector<int32_t> &found);
  void reorder(int32_t merged, int32_t a, int32_t b);

  /// Edges looked at before two nodes are taken for not contractible: of a
  /// large model fewer, which leaves up to a quarter more nodes (random graphs)
  /// and takes a third of the time of grouping away.
  static constexpr int32_t manyNodes = 200'000;
  int searchLimit;

  const Model &model;
  std::vector<Unit> group; ///< of each node
  DisjointSets sets;
  std::vector<int32_t> position;
  std::vector<int64_t> time; ///< of the set that a node names
  int64_t shortTime = 0;
  /// Of the lists, which are many and short: a block each would take longer to
  /// make than to go through, and most of it would be empty.
  std::pmr::monotonic_buffer_resource memory;
  std::vector<Neighbours> next, previous;
  std::vector<int32_t> mark;
  int32_t stamp = 0;
  int32_t contractions = 0;
  std::vector<int32_t> after, before, slots;
};

Fuser::Fuser(const Model &model, const std::vector<Unit> &unitOf,
             double delayShare)
    : searchLimit(model.numNodes > manyNodes ? 100 : 1000), model(model),
      group(model.numNodes), sets(model.numNodes), position(model.numNodes),
      mark(model.numNodes, 0) {
  for (int32_t k = 0; k < model.numNodes; ++k)
    position[model.order[k]] = k;
  next.reserve(model.numNodes);
  previous.reserve(model.numNodes);
  int64_t total = 0;
  for (int32_t i = 0; i < model.numNodes; ++i) {
    group[i] = unitOf[model.unit[i]];
    time.push_back(model.meanTime(i));
    total += time.back();
    next.emplace_back(&memory).list.reserve(
        countOf([&](auto visit) { model.forEachUser(i, visit); }));
    previous.emplace_back(&memory).list.reserve(
        countOf([&](auto visit) { model.forEachSource(i, visit); }));
  }
  shortTime = static_cast<int64_t>(static_cast<double>(total) * delayShare);
  for (int32_t i = 0; i < model.numNodes; ++i)
    model.forEachUser(i, [&](int32_t user) {
      next[i].list.push_back(user);
      previous[user].list.push_back(i);
    });
}

/// A contracted node gives its results when all of it has run, and runs when
/// all its operands are there: other units would wait for \p b, or \p a would
/// wait for them. True when that is not short.
bool Fuser::delays(int32_t a, int32_t b) {
  Unit own = group[a];
  auto meets = [&](const Neighbours &of) {
    return std::any_of(of.list.begin(), of.list.end(), [&](int32_t entry) {
      return group[entry] != own; // contracted nodes are of one group
    });
  };
  return (time[b] > shortTime && meets(next[a])) ||
         (time[a] > shortTime && meets(previous[b]));
}

/// Collects what \p from reaches strictly between it and \p target, leaving
/// out the direct edge. False: there is another path, or the bound was passed.
bool Fuser::search(int32_t from, int32_t target, bool forward,
                   std::vector<int32_t> &found) {
  found.assign(1, from);
  ++stamp;
  int edges = 0;
  for (size_t k = 0; k < found.size(); ++k) {
    int32_t at = found[k];
    auto &list = forward ? next[at].list : previous[at].list;
    for (int32_t &entry : list) {
      entry = sets.find(entry);
      if (++edges > searchLimit)
        return false;
      if (entry == target && at != from)
        return false;
      bool between = forward ? position[entry] < position[target]
                             : position[entry] > position[target];
      if (entry == at || entry == target || !between || mark[entry] == stamp)
        continue;
      mark[entry] = stamp;
      found.push_back(entry);
    }
  }
  found.erase(found.begin());
  return true;
}

/// Gives the merged node and what lies around it their new positions: first
/// what leads to it, then itself, then what follows from it.
void Fuser::reorder(int32_t merged, int32_t a, int32_t b) {
  auto byPosition = [&](int32_t x, int32_t y) {
    return position[x] < position[y];
  };
  std::sort(before.begin(), before.end(), byPosition);
  std::sort(after.begin(), after.end(), byPosition);
  slots.assign({position[a], position[b]});
  for (int32_t i : before)
    slots.push_back(position[i]);
  for (int32_t i : after)
    slots.push_back(position[i]);
  std::sort(slots.begin(), slots.end());
  size_t slot = 0;
  for (int32_t i : before)
    position[i] = slots[slot++];
  position[merged] = slots[slot];
  slot = slots.size() - after.size();
  for (int32_t i : after)
    position[i] = slots[slot++];
}

/// True when \p node is the only neighbour.
bool Fuser::isOnly(Neighbours &of, int32_t self, int32_t node) {
  for (size_t k = 0; k < of.list.size();) {
    int32_t entry = sets.find(of.list[k]);
    if (entry == node) {
      ++k;
    } else if (entry == self) {
      of.list[k] = of.list.back();
      of.list.pop_back();
    } else {
      return false;
    }
  }
  return true;
}

/// Adds the neighbours of what was contracted into \p merged. Putting them in
/// order takes as long as there are many: it is left out as long as there must
/// be more than any search looks at. A contraction makes one less at most.
void Fuser::join(Neighbours &into, Neighbours &from, int32_t merged) {
  if (into.list.size() < from.list.size())
    std::swap(into, from);
  into.list.insert(into.list.end(), from.list.begin(), from.list.end());
  from.list.clear();
  if (into.distinct - (contractions - into.contracted) > searchLimit &&
      into.list.size() < 2 * static_cast<size_t>(into.distinct))
    return;
  // Each once, without itself.
  mark[merged] = ++stamp;
  std::erase_if(into.list, [&](int32_t &entry) {
    entry = sets.find(entry);
    return std::exchange(mark[entry], stamp) == stamp;
  });
  into.distinct = static_cast<int32_t>(into.list.size());
  into.contracted = contractions;
}

bool Fuser::contract(int32_t a, int32_t b) {
  a = sets.find(a);
  b = sets.find(b);
  if (a == b || delays(a, b))
    return false;
  // Most have no other way between them: the one goes where the other is.
  std::optional<int32_t> place;
  if (isOnly(previous[b], b, a))
    place = position[a];
  else if (isOnly(next[a], a, b))
    place = position[b];
  else if (!search(a, b, /*forward=*/true, after) ||
           !search(b, a, /*forward=*/false, before))
    return false;
  int32_t merged = sets.join(a, b), other = merged == a ? b : a;
  time[merged] += time[other];
  if (place)
    position[merged] = *place;
  else
    reorder(merged, a, b);
  ++contractions;
  for (auto *lists : {&next, &previous})
    join((*lists)[merged], (*lists)[other], merged);
  return true;
}

void Fuser::run() {
  // A contraction can open the way for another: a second round is enough for
  // nearly all of them.
  for (int round = 0; round < 2; ++round) {
    bool changed = false;
    for (int32_t i : model.order)
      model.forEachUser(i, [&](int32_t user) {
        if (group[i] == group[user])
          changed |= contract(i, user);
      });
    if (!changed)
      return;
  }
}

} // namespace

void baechi::placement::grouping::fuse(const Model &model,
                                       Coarsening &coarsening,
                                       double delayShare) {
  Fuser fuser(model, coarsening.unit, delayShare);
  fuser.run();
  fuser.write(coarsening);
}

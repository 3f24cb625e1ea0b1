//===- Verdict.cpp - What of a loop may run at once ------------*- C++ -*--===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Baechi/Loops/Verdict.h"
#include "Conflicts.h"
#include "Forms.h"
#include <algorithm>
#include <functional>

using namespace baechi::loops;

namespace {
/// Takes a scheme; whether it is enough.
using Visit = std::function<bool(const Verdict &)>;

bool isFirst(const Verdict & /*verdict*/) { return true; }

/// Arrays of which all accesses add, and may do so in any order.
std::vector<int32_t> sumsOf(const Loop &loop) {
  std::vector<int32_t> found;
  for (size_t array = 0; array < loop.arrays.size(); ++array) {
    bool any = false, all = true;
    for (const Access &access : loop.accesses)
      if (access.array == static_cast<int32_t>(array)) {
        any = true;
        all &= access.kind == AccessKind::Add;
      }
    if (any && all && (loop.reassociate || loop.arrays[array].anyOrder))
      found.push_back(array);
  }
  return found;
}

/// Sets of keys in all of which entries differ that are independent: the least
/// ones, each with any of its keys as the workers'.
bool findDisjoint(const Loop &loop, const Conflicts &conflicts, size_t most,
                  Verdict &verdict, const Visit &visit) {
  std::vector<std::vector<int32_t>> found;
  auto isLeast = [&](const std::vector<int32_t> &keys) {
    return std::none_of(found.begin(), found.end(), [&](const auto &fewer) {
      return std::all_of(fewer.begin(), fewer.end(), [&](int32_t key) {
        return std::find(keys.begin(), keys.end(), key) != keys.end();
      });
    });
  };
  for (size_t size = 1; size <= std::min(most, loop.keys.size()); ++size)
    for (const std::vector<int32_t> &keys : subsets(loop, size)) {
      if (!isLeast(keys))
        continue;
      if (auto pair = conflicts.differingIn(unitsOf(loop, keys))) {
        verdict.obstacle = pair;
        continue;
      }
      verdict.scheme = Scheme::Disjoint;
      verdict.keys = keys;
      found.push_back(keys);
      for (size_t first = 0; first < keys.size(); ++first) {
        std::rotate(verdict.keys.begin(), verdict.keys.begin() + first,
                    verdict.keys.begin() + first + 1);
        if (visit(verdict))
          return true;
      }
    }
  return false;
}

bool findWavefront(const Loop &loop, const Conflicts &conflicts,
                   Verdict &verdict, const Visit &visit) {
  for (const std::vector<int32_t> &keys : subsets(loop, 2)) {
    if (conflicts.differingIn(unitsOf(loop, keys)))
      continue;
    bool follows = std::all_of(keys.begin(), keys.end(), [&](int32_t key) {
      return !conflicts.notLater(unit(loop, key), 0);
    });
    if (!follows)
      continue;
    verdict.scheme = Scheme::Wavefront;
    verdict.keys = keys;
    if (visit(verdict))
      return true;
    std::reverse(verdict.keys.begin(), verdict.keys.end());
    if (visit(verdict))
      return true;
  }
  return false;
}

/// The simplest two sums in which no entry is before one that it depends on
/// (the skewing of Wolf and Lam, section 3), that with more of the arrays
/// first.
std::vector<Form> wavesOf(const Loop &loop, const Conflicts &conflicts) {
  std::vector<Form> found;
  for (const Form &form : simpleForms(loop, /*units=*/true)) {
    if ((!found.empty() && areParallel(found[0], form)) ||
        conflicts.notLater(form, 0))
      continue;
    found.push_back(form);
    if (found.size() < 2)
      continue;
    if (homeBytes(loop, found[1]) > homeBytes(loop, found[0]))
      std::swap(found[0], found[1]);
    return found;
  }
  return {};
}

bool findTransformed(const Loop &loop, const Conflicts &conflicts,
                     Verdict &verdict, const Visit &visit) {
  verdict.keys.clear();
  for (const Form &form : simpleForms(loop, /*units=*/false))
    if (!isSame(loop, form) && !conflicts.differingIn({form})) {
      verdict.scheme = Scheme::Skewed;
      verdict.form = form;
      if (visit(verdict))
        return true;
      break; // others of them are less simple
    }
  auto several = [](const Key &key) { return key.upper - key.lower > 1; };
  if (std::count_if(loop.keys.begin(), loop.keys.end(), several) < 2 ||
      loop.listed)
    return false; // entries of a time are as good as one, or of no time
  for (const Form &form : simpleForms(loop, /*units=*/true))
    if (!conflicts.notLater(form, 1)) {
      verdict.scheme = Scheme::Timed;
      verdict.form = form;
      verdict.waves = wavesOf(loop, conflicts);
      return visit(verdict);
    }
  return false;
}

/// The schemes of a loop, those first that are taken where nothing else is
/// known.
bool find(const Loop &loop, const Conflicts &conflicts, Verdict &verdict,
          const Visit &visit = isFirst) {
  verdict.obstacle.reset();
  std::optional<Conflicts::Pair> any;
  for (size_t key = 0; key < loop.keys.size() && !any; ++key)
    any = conflicts.differingIn({unit(loop, key)});
  if (!any) {
    verdict.scheme = Scheme::Independent;
    if (visit(verdict))
      return true;
    // Blocks may be cut along any key. Pieces by an outer one lie in one place.
    for (int32_t key = 0; key < static_cast<int32_t>(loop.keys.size()); ++key) {
      verdict.keys = {key};
      if (!isSame(loop, unit(loop, key)) && visit(verdict))
        return true;
    }
    return false;
  }
  verdict.obstacle = any;
  // In an ordered loop a block keeps its entries' order; between blocks of two
  // keys only a wavefront does.
  bool found = false;
  auto note = [&](const Verdict &one) {
    found = true;
    return visit(one);
  };
  if (findDisjoint(loop, conflicts, loop.ordered ? 1 : 3, verdict, note))
    return true;
  if (loop.ordered && !loop.listed && loop.keys.size() >= 2 &&
      findWavefront(loop, conflicts, verdict, note))
    return true;
  // Where entries that differ in keys are independent, no sum is better.
  return !found && findTransformed(loop, conflicts, verdict, visit);
}

/// The best scheme of a loop that has one only with sums of each block's own.
std::optional<Verdict> findWithSums(const Loop &loop, const Verdict &serial) {
  std::vector<int32_t> sums = sumsOf(loop);
  if (sums.empty())
    return std::nullopt;
  Verdict reduced;
  auto works = [&](const std::vector<int32_t> &arrays) {
    Verdict tried = serial;
    tried.reduced = arrays;
    if (!find(loop, Conflicts(loop, arrays), tried))
      return false;
    reduced = std::move(tried);
    return true;
  };
  if (!works(sums))
    return std::nullopt;
  // Large arrays are better cut than summed up by each block.
  std::stable_sort(sums.begin(), sums.end(), [&](int32_t a, int32_t b) {
    return bytesOf(loop.arrays[a]) > bytesOf(loop.arrays[b]);
  });
  for (int32_t array : std::vector<int32_t>(sums)) {
    std::vector<int32_t> fewer = reduced.reduced;
    std::erase(fewer, array);
    works(fewer);
  }
  return reduced;
}

/// The blocks that a serial loop has if the keys with one value have two: they
/// follow each other along such a key, and what is right for more entries is
/// for fewer. What forbids blocks then does so for any keys.
void findAsIfLarger(const Loop &loop, Verdict &serial) {
  Loop larger = loop;
  bool any = false;
  for (Key &key : larger.keys)
    if (key.upper - key.lower == 1) {
      ++key.upper;
      any = true;
    }
  if (!any)
    return;
  Verdict found = analyse(larger);
  if (found.obstacle)
    serial.obstacle = found.obstacle;
  if (found.scheme != Scheme::Disjoint && found.scheme != Scheme::Wavefront)
    return;
  found.dependences = std::move(serial.dependences);
  serial = std::move(found);
}

} // namespace

Verdict baechi::loops::analyse(const Loop &loop) {
  Verdict verdict;
  Conflicts all(loop, {});
  verdict.dependences = all.dependences();
  if (find(loop, all, verdict))
    return verdict;
  if (auto found = findWithSums(loop, verdict))
    return *found;
  findAsIfLarger(loop, verdict);
  return verdict;
}

std::vector<Verdict> baechi::loops::schemesOf(const Loop &loop,
                                              const Verdict &first) {
  std::vector<Verdict> found{first};
  if (first.scheme == Scheme::Serial)
    return found;
  auto take = [&](Verdict verdict) {
    bool isKnown =
        std::any_of(found.begin(), found.end(), [&](const Verdict &other) {
          return other.scheme == verdict.scheme && other.keys == verdict.keys &&
                 other.form == verdict.form &&
                 other.reduced.size() <= verdict.reduced.size();
        });
    verdict.obstacle = first.obstacle;
    verdict.dependences = first.dependences;
    if (!isKnown)
      found.push_back(std::move(verdict));
    return false;
  };
  Verdict verdict;
  verdict.reduced = first.reduced;
  find(loop, Conflicts(loop, verdict.reduced), verdict, take);
  std::vector<int32_t> sums = sumsOf(loop);
  if (sums.size() > first.reduced.size()) {
    Verdict reduced;
    reduced.reduced = sums;
    find(loop, Conflicts(loop, sums), reduced, take);
  }
  // Where any key is right, each is a scheme of its own.
  std::vector<Verdict> along;
  for (const Verdict &each : found)
    if (each.scheme != Scheme::Independent || !each.keys.empty())
      along.push_back(each);
  return along.empty() ? found : along;
}

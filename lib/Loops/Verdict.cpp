//===- Verdict.cpp - What of a loop may run at once ------------*- C++ -*--===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Baechi/Loops/Verdict.h"
#include "Conflicts.h"
#include <algorithm>
#include <functional>

using namespace baechi::loops;

namespace {
using Form = Conflicts::Form;

/// The largest coefficient that the sum of a transformed loop may have: there
/// are (2 * most + 1)^keys sums.
int64_t mostOfForm(const Loop &loop) { return loop.keys.size() > 4 ? 1 : 2; }

Form unit(const Loop &loop, int32_t key) {
  Form form(loop.keys.size(), 0);
  form[key] = 1;
  return form;
}

int64_t bytesOf(const Array &array) {
  int64_t bytes = array.elementBytes;
  for (int64_t extent : array.extents)
    bytes *= std::max<int64_t>(extent, 1);
  return bytes;
}

/// What lies with the blocks that are cut along \p form.
int64_t homeBytes(const Loop &loop, const Form &form) {
  int64_t bytes = 0;
  for (size_t array = 0; array < loop.arrays.size(); ++array)
    if (homeOf(loop, array, form))
      bytes += bytesOf(loop.arrays[array]);
  return bytes;
}

/// Whether all entries have the same sum: no two differ in it, which says
/// nothing.
bool isSame(const Loop &loop, const Form &form) {
  for (size_t key = 0; key < form.size(); ++key)
    if (form[key] && loop.keys[key].upper - loop.keys[key].lower > 1)
      return false;
  return true;
}

/// All subsets of \p size keys that have several values, those first that move
/// the least: what lies with the workers' key stays, then what lies with the
/// others rotates.
std::vector<std::vector<int32_t>> subsets(const Loop &loop, size_t size) {
  std::vector<std::vector<int32_t>> found;
  std::vector<int32_t> chosen;
  std::function<void(int32_t)> extend = [&](int32_t next) {
    if (chosen.size() == size) {
      found.push_back(chosen);
      return;
    }
    for (; next < static_cast<int32_t>(loop.keys.size()); ++next) {
      if (isSame(loop, unit(loop, next)))
        continue;
      chosen.push_back(next);
      extend(next + 1);
      chosen.pop_back();
    }
  };
  extend(0);
  std::vector<int64_t> bytes;
  for (size_t key = 0; key < loop.keys.size(); ++key)
    bytes.push_back(homeBytes(loop, unit(loop, key)));
  auto total = [&](const std::vector<int32_t> &keys) {
    int64_t sum = 0;
    for (int32_t key : keys)
      sum += bytes[key];
    return sum;
  };
  for (std::vector<int32_t> &keys : found)
    std::stable_sort(keys.begin(), keys.end(),
                     [&](int32_t a, int32_t b) { return bytes[a] > bytes[b]; });
  std::stable_sort(
      found.begin(), found.end(),
      [&](const auto &a, const auto &b) { return total(a) > total(b); });
  return found;
}

std::vector<Form> unitsOf(const Loop &loop, const std::vector<int32_t> &keys) {
  std::vector<Form> forms;
  for (int32_t key : keys)
    forms.push_back(unit(loop, key));
  return forms;
}

/// Sums of the keys with small coefficients, simple ones first, the first
/// coefficient that is not 0 positive; the keys themselves only for \p units.
std::vector<Form> simpleForms(const Loop &loop, bool units) {
  std::vector<Form> found;
  int64_t largest = mostOfForm(loop);
  Form form(loop.keys.size(), -largest);
  auto weight = [](const Form &of) {
    int64_t sum = 0;
    for (int64_t c : of)
      sum += c < 0 ? -c : c;
    return sum;
  };
  while (true) {
    auto first =
        std::find_if(form.begin(), form.end(), [](int64_t c) { return c; });
    if (first != form.end() && *first > 0 && (units || weight(form) > 1))
      found.push_back(form);
    size_t k = 0;
    while (k < form.size() && form[k] == largest)
      form[k++] = -largest;
    if (k == form.size())
      break;
    ++form[k];
  }
  std::stable_sort(
      found.begin(), found.end(),
      [&](const Form &a, const Form &b) { return weight(a) < weight(b); });
  return found;
}

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

/// Entries that differ in all keys of a set are independent: the least set.
bool findDisjoint(const Loop &loop, const Conflicts &conflicts, size_t most,
                  Verdict &verdict) {
  for (size_t size = 1; size <= std::min(most, loop.keys.size()); ++size)
    for (const std::vector<int32_t> &keys : subsets(loop, size)) {
      auto pair = conflicts.differingIn(unitsOf(loop, keys));
      if (!pair) {
        verdict.scheme = Scheme::Disjoint;
        verdict.keys = keys;
        return true;
      }
      verdict.obstacle = pair;
    }
  return false;
}

bool findWavefront(const Loop &loop, const Conflicts &conflicts,
                   Verdict &verdict) {
  for (const std::vector<int32_t> &keys : subsets(loop, 2)) {
    if (conflicts.differingIn(unitsOf(loop, keys)))
      continue;
    bool follows = std::all_of(keys.begin(), keys.end(), [&](int32_t key) {
      return !conflicts.notLater(unit(loop, key), 0);
    });
    if (follows) {
      verdict.scheme = Scheme::Wavefront;
      verdict.keys = keys;
      return true;
    }
  }
  return false;
}

bool areParallel(const Form &a, const Form &b) {
  for (size_t i = 0; i < a.size(); ++i)
    for (size_t j = 0; j < i; ++j)
      if (a[i] * b[j] != a[j] * b[i])
        return false;
  return true;
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
                     Verdict &verdict) {
  for (const Form &form : simpleForms(loop, /*units=*/false))
    if (!isSame(loop, form) && !conflicts.differingIn({form})) {
      verdict.scheme = Scheme::Skewed;
      verdict.form = form;
      return true;
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
      return true;
    }
  return false;
}

bool find(const Loop &loop, const Conflicts &conflicts, Verdict &verdict) {
  verdict.obstacle.reset();
  std::optional<Conflicts::Pair> any;
  for (size_t key = 0; key < loop.keys.size() && !any; ++key)
    any = conflicts.differingIn({unit(loop, key)});
  if (!any) {
    verdict.scheme = Scheme::Independent;
    return true;
  }
  verdict.obstacle = any;
  // In an ordered loop a block keeps its entries' order; between blocks of two
  // keys only a wavefront does.
  if (findDisjoint(loop, conflicts, loop.ordered ? 1 : 3, verdict))
    return true;
  if (loop.ordered && !loop.listed && loop.keys.size() >= 2 &&
      findWavefront(loop, conflicts, verdict))
    return true;
  return findTransformed(loop, conflicts, verdict);
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

//===- Home.cpp - How arrays are cut with blocks ----------------*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Baechi/Loops/Verdict.h"
#include <algorithm>
#include <climits>

using namespace baechi::loops;

namespace {
/// [least, end) of what has been added.
struct Range {
  int64_t least = INT64_MAX, end = INT64_MIN;

  bool empty() const { return end == INT64_MIN; }
  void add(int64_t first, int64_t last) {
    least = std::min(least, first);
    end = std::max(end, last);
  }
};

int64_t at(const std::vector<int64_t> &numbers, size_t i) {
  return i < numbers.size() ? numbers[i] : 0;
}

/// How many times \p form \p sum is, if it is so more than 0 times.
std::optional<int64_t> timesOf(const Affine &sum,
                               const std::vector<int64_t> &form) {
  std::optional<int64_t> times;
  for (size_t k = 0; k < form.size(); ++k) {
    int64_t coefficient = at(sum.coefficients, k);
    if (form[k] == 0 ? coefficient != 0 : coefficient % form[k] != 0)
      return std::nullopt;
    if (form[k] == 0)
      continue;
    if (times && *times != coefficient / form[k])
      return std::nullopt;
    times = coefficient / form[k];
  }
  return times && *times > 0 ? times : std::nullopt;
}

/// The subscript of what is cut, if it is a sum of keys.
std::optional<Subscript> cutSubscript(const Access &access, const Home &home) {
  Subscript made = access.subscripts[home.dimension];
  std::vector<const Subscript *> of = {&access.subscripts[home.dimension]};
  if (home.sheared)
    of.push_back(&access.subscripts[*home.sheared]);
  for (const Subscript *each : of)
    if (each->kind != Subscript::Kind::At ||
        (home.sheared && each->size != 1) ||
        std::any_of(each->at.symbols.begin(), each->at.symbols.end(),
                    [](int64_t c) { return c != 0; }))
      return std::nullopt;
  if (home.sheared) {
    const Affine &other = of[1]->at;
    size_t keys =
        std::max(made.at.coefficients.size(), other.coefficients.size());
    made.at.coefficients.resize(keys, 0);
    for (size_t k = 0; k < keys; ++k)
      made.at.coefficients[k] += home.multiple * at(other.coefficients, k);
    made.at.constant += home.multiple * other.constant;
  }
  return made;
}

/// Completes \p home, of which the dimensions are given.
std::optional<Home> cutAlong(const Loop &loop, int32_t array,
                             const std::vector<int64_t> &form, Home home) {
  Range read, written;
  std::optional<int64_t> factor;
  for (const Access &access : loop.accesses) {
    if (access.array != array)
      continue;
    auto subscript = cutSubscript(access, home);
    if (!subscript)
      return std::nullopt;
    auto times = timesOf(subscript->at, form);
    if (!times || (factor && factor != times))
      return std::nullopt;
    factor = times;
    Range &range = access.kind == AccessKind::Read ? read : written;
    range.add(subscript->at.constant, subscript->at.constant + subscript->size);
  }
  if (!factor)
    return std::nullopt;
  home.factor = *factor;
  home.constant = written.empty() ? read.least : written.least;
  if (!written.empty() && written.end - written.least > *factor)
    return std::nullopt; // a neighbour's entries write there, too
  if (!read.empty()) {
    home.below = std::max<int64_t>(0, home.constant - read.least);
    home.above = std::max<int64_t>(0, read.end - *factor - home.constant);
  }
  return home;
}

bool isWritten(const Loop &loop, int32_t array) {
  return std::any_of(
      loop.accesses.begin(), loop.accesses.end(), [&](const Access &access) {
        return access.array == array && access.kind != AccessKind::Read;
      });
}
} // namespace

std::optional<Home> baechi::loops::homeOf(const Loop &loop, int32_t array,
                                          const std::vector<int64_t> &form) {
  std::optional<Home> best;
  auto tryHome = [&](const Home &given) {
    auto home = cutAlong(loop, array, form, given);
    if (home &&
        (!best || home->below + home->above < best->below + best->above))
      best = home;
  };
  auto dimensions = static_cast<int32_t>(loop.arrays[array].extents.size());
  for (int32_t i = 0; i < dimensions; ++i)
    tryHome({i});
  // What is only read may be whole; shearing makes it larger.
  if (best || !isWritten(loop, array))
    return best;
  for (int64_t multiple : {-1, 1, -2, 2})
    for (int32_t i = 0; i < dimensions && !best; ++i)
      for (int32_t other = 0; other < dimensions; ++other)
        if (other != i)
          tryHome({i, 1, 0, 0, 0, other, multiple});
  return best;
}

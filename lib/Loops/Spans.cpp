//===- Spans.cpp - What sums of a block's keys are between -----*- C++ -*--===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Baechi/Loops/Schedule.h"
#include "IntegerSystem.h"
#include <tuple>

using namespace baechi::loops;

namespace {
IntegerSystem::Sum sumOf(const IntegerSystem &system, const Affine &of,
                         int64_t sign, int64_t constant) {
  IntegerSystem::Sum made = system.sum();
  for (size_t k = 0; k < of.coefficients.size(); ++k)
    made.coefficients[k] = IntegerSystem::Number(sign) * of.coefficients[k];
  made.constant = IntegerSystem::Number(sign) * of.constant + constant;
  return made;
}

bool hasSymbols(const Affine &of) {
  for (int64_t coefficient : of.symbols)
    if (coefficient != 0)
      return true;
  return false;
}
} // namespace

std::optional<Span> baechi::loops::spanOf(const Loop &loop,
                                          const Schedule &schedule,
                                          const Block &block,
                                          const Affine &sum) {
  if (hasSymbols(sum))
    return std::nullopt;
  IntegerSystem system(loop.keys.size());
  auto addBetween = [&](const Affine &of, int64_t first, int64_t end) {
    system.addAtLeastZero(sumOf(system, of, 1, -first));
    system.addAtLeastZero(sumOf(system, of, -1, end - 1));
  };
  for (size_t k = 0; k < loop.keys.size(); ++k) {
    Affine key{std::vector<int64_t>(loop.keys.size(), 0), 0};
    key.coefficients[k] = 1;
    addBetween(key, loop.keys[k].lower, loop.keys[k].upper);
  }
  for (size_t axis = 0; axis < schedule.axes.size(); ++axis) {
    const std::vector<int64_t> &cuts = schedule.cuts[axis];
    addBetween({schedule.axes[axis], 0}, cuts[block.parts[axis]],
               cuts[block.parts[axis] + 1]);
  }
  for (const Affine &inside : loop.domain)
    if (!hasSymbols(inside))
      system.addAtLeastZero(sumOf(system, inside, 1, 0));
  auto [least, most] = system.boundsOf(sumOf(system, sum, 1, 0));
  // No bounds: none of the keys is in the block, or it is too large to tell.
  if (!least || !most)
    return system.solve() == IntegerSystem::Answer::Empty
               ? std::optional(Span())
               : std::nullopt;
  return Span{*least, *most + 1};
}

Place baechi::loops::placeOf(const Loop &loop, const Affine &sum, Span span) {
  IntegerSystem system(loop.keys.size());
  bool isKnown = true;
  for (size_t k = 0; k < loop.keys.size(); ++k) {
    Affine key{std::vector<int64_t>(loop.keys.size(), 0), 0};
    key.coefficients[k] = 1;
    system.addAtLeastZero(sumOf(system, key, 1, -loop.keys[k].lower));
    system.addAtLeastZero(sumOf(system, key, -1, loop.keys[k].upper - 1));
  }
  for (const Affine &inside : loop.domain) {
    isKnown &= !hasSymbols(inside);
    if (!hasSymbols(inside))
      system.addAtLeastZero(sumOf(system, inside, 1, 0));
  }
  Place place;
  if (hasSymbols(sum))
    return place;
  std::tie(place.least, place.most) = system.boundsOf(sumOf(system, sum, 1, 0));
  place.inside = true;
  for (IntegerSystem::Sum beyond : {sumOf(system, sum, -1, span.first - 1),
                                    sumOf(system, sum, 1, -span.end)}) {
    IntegerSystem one = system;
    one.addAtLeastZero(std::move(beyond));
    IntegerSystem::Answer answer = one.solve();
    place.inside &= answer == IntegerSystem::Answer::Empty;
    place.outside |= isKnown && answer == IntegerSystem::Answer::Point;
  }
  return place;
}

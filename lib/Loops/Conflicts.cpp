//===- Conflicts.cpp - Entries that meet -----------------------*- C++ -*--===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Conflicts.h"
#include <algorithm>

using namespace baechi::loops;

namespace {
using Sum = IntegerSystem::Sum;
using Answer = IntegerSystem::Answer;

/// \p sign times the position of entry \p entry (0 or 1), added to \p sum.
void add(Sum &sum, const Affine &at, size_t entry, size_t keys,
         IntegerSystem::Number sign) {
  for (size_t k = 0; k < at.coefficients.size(); ++k)
    sum.coefficients[entry * keys + k] += sign * at.coefficients[k];
  for (size_t s = 0; s < at.symbols.size(); ++s)
    sum.coefficients[2 * keys + s] += sign * at.symbols[s];
  sum.constant += sign * at.constant;
}

/// Two entries' keys, then the symbols.
size_t variablesOf(const Loop &loop) {
  return 2 * loop.keys.size() + loop.symbols.size();
}

IntegerSystem meetingOf(const Loop &loop, const Access &a, const Access &b) {
  size_t keys = loop.keys.size();
  IntegerSystem system(variablesOf(loop));
  for (size_t entry = 0; entry < 2; ++entry) {
    for (const Affine &form : loop.domain) {
      Sum inside = system.sum();
      add(inside, form, entry, keys, 1);
      system.addAtLeastZero(inside);
    }
    for (size_t k = 0; k < keys; ++k) {
      Sum below = system.sum(), above = system.sum();
      below.coefficients[entry * keys + k] = 1;
      below.constant = -loop.keys[k].lower;
      above.coefficients[entry * keys + k] = -1;
      above.constant = loop.keys[k].upper - 1;
      system.addAtLeastZero(below);
      system.addAtLeastZero(above);
    }
  }
  for (size_t i = 0; i < a.subscripts.size(); ++i) {
    const Subscript &mine = a.subscripts[i], &other = b.subscripts[i];
    if (mine.kind != Subscript::Kind::At || other.kind != Subscript::Kind::At)
      continue;
    Sum apart = system.sum(), reversed = system.sum();
    add(apart, mine.at, 0, keys, 1);
    add(apart, other.at, 1, keys, -1);
    add(reversed, mine.at, 0, keys, -1);
    add(reversed, other.at, 1, keys, 1);
    if (mine.size == 1 && other.size == 1) {
      system.addZero(apart);
      continue;
    }
    apart.constant += mine.size - 1;
    reversed.constant += other.size - 1;
    system.addAtLeastZero(apart);
    system.addAtLeastZero(reversed);
  }
  return system;
}
} // namespace

Conflicts::Conflicts(const Loop &loop, const std::vector<int32_t> &reduced)
    : loop(loop) {
  for (size_t a = 0; a < loop.accesses.size(); ++a)
    for (size_t b = a; b < loop.accesses.size(); ++b) {
      const Access &first = loop.accesses[a], &second = loop.accesses[b];
      bool bothRead =
          first.kind == AccessKind::Read && second.kind == AccessKind::Read;
      if (first.array != second.array || bothRead ||
          loop.arrays[first.array].buffered ||
          std::count(reduced.begin(), reduced.end(), first.array))
        continue;
      IntegerSystem system = meetingOf(loop, first, second);
      if (system.solve() == Answer::Empty)
        continue;
      Pair pair(a, b);
      pairs.push_back({pair, system});
      ordered.push_back({pair, system});
      if (a != b)
        ordered.push_back({Pair(b, a), meetingOf(loop, second, first)});
    }
}

IntegerSystem::Sum Conflicts::distance(const Form &form) const {
  size_t keys = loop.keys.size();
  Sum sum = IntegerSystem(variablesOf(loop)).sum();
  for (size_t k = 0; k < form.size(); ++k) {
    sum.coefficients[k] = -form[k];
    sum.coefficients[keys + k] = form[k];
  }
  return sum;
}

bool Conflicts::meetsApart(const IntegerSystem &system,
                           const std::vector<Form> &forms, size_t next) const {
  if (system.solve() == Answer::Empty)
    return false;
  if (next == forms.size())
    return true;
  for (int sign : {1, -1}) {
    Form form = forms[next];
    for (int64_t &c : form)
      c *= sign;
    Sum apart = distance(form);
    apart.constant -= 1;
    IntegerSystem with = system;
    with.addAtLeastZero(apart);
    if (meetsApart(with, forms, next + 1))
      return true;
  }
  return false;
}

std::optional<Conflicts::Pair>
Conflicts::differingIn(const std::vector<Form> &forms) const {
  for (const Meeting &meeting : pairs)
    if (meetsApart(meeting.system, forms, 0))
      return meeting.accesses;
  return std::nullopt;
}

IntegerSystem Conflicts::later(const Meeting &meeting, size_t level) const {
  IntegerSystem system = meeting.system;
  for (size_t k = 0; k <= level; ++k) {
    Form unit(loop.keys.size(), 0);
    unit[k] = 1;
    Sum sum = distance(unit);
    if (k < level) {
      system.addZero(sum);
    } else {
      sum.constant -= 1;
      system.addAtLeastZero(sum);
    }
  }
  return system;
}

std::optional<Conflicts::Pair> Conflicts::notLater(const Form &form,
                                                   int64_t least) const {
  Form negated = form;
  for (int64_t &c : negated)
    c = -c;
  for (const Meeting &meeting : ordered)
    for (size_t level = 0; level < loop.keys.size(); ++level) {
      IntegerSystem system = later(meeting, level);
      Sum sum = distance(negated);
      sum.constant += least - 1;
      system.addAtLeastZero(sum);
      if (system.solve() != Answer::Empty)
        return meeting.accesses;
    }
  return std::nullopt;
}

std::vector<Dependence> Conflicts::dependences() const {
  std::vector<Dependence> found;
  size_t keys = loop.keys.size();
  for (const Meeting &meeting : ordered) {
    Dependence dependence{meeting.accesses.first, meeting.accesses.second, {}};
    for (size_t level = 0; level < keys; ++level) {
      IntegerSystem system = later(meeting, level);
      if (system.solve() == Answer::Empty)
        continue;
      bool isFirst = dependence.distances.empty();
      dependence.distances.resize(keys);
      for (size_t k = 0; k < keys; ++k) {
        Form unit(keys, 0);
        unit[k] = 1;
        auto [least, most] = system.boundsOf(distance(unit));
        Distance &hull = dependence.distances[k];
        int64_t reach = loop.keys[k].upper - loop.keys[k].lower - 1;
        if (least && *least <= -reach && reach > 0)
          least.reset();
        if (most && *most >= reach && reach > 0)
          most.reset();
        if (isFirst) {
          hull = {least, most};
          continue;
        }
        hull.least = hull.least && least
                         ? std::optional(std::min(*hull.least, *least))
                         : std::nullopt;
        hull.most = hull.most && most
                        ? std::optional(std::max(*hull.most, *most))
                        : std::nullopt;
      }
    }
    if (!dependence.distances.empty())
      found.push_back(std::move(dependence));
  }
  return found;
}

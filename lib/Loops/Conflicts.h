//===- Conflicts.h - Entries that meet -------------------------*- C++ -*--===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Pairs of accesses of which at least one writes, and questions about the
/// entries at which they meet.
///
//===----------------------------------------------------------------------===//
#ifndef BAECHI_LIB_LOOPS_CONFLICTS_H
#define BAECHI_LIB_LOOPS_CONFLICTS_H

#include "Baechi/Loops/Verdict.h"
#include "IntegerSystem.h"

namespace baechi::loops {

class Conflicts {
public:
  using Pair = std::pair<int32_t, int32_t>;
  using Form = std::vector<int64_t>; ///< coefficients of the keys

  /// Accesses that add to the arrays \p reduced do not conflict.
  Conflicts(const Loop &loop, const std::vector<int32_t> &reduced);

  bool empty() const { return pairs.empty(); }
  /// Two accesses that meet at entries that differ in every one of \p forms.
  std::optional<Pair> differingIn(const std::vector<Form> &forms) const;
  /// Two accesses that meet at entries of which the later one, by the keys'
  /// order, has a \p form less than \p least more.
  std::optional<Pair> notLater(const Form &form, int64_t least) const;
  std::vector<Dependence> dependences() const;

private:
  /// Entries at which the two meet: the first pair's keys, then the other's.
  struct Meeting {
    Pair accesses;
    IntegerSystem system;
  };
  IntegerSystem::Sum distance(const Form &form) const;
  /// Those of \p pair's entries of which the second is later, and the distance
  /// begins with \p level zeros.
  IntegerSystem later(const Meeting &meeting, size_t level) const;
  bool meetsApart(const IntegerSystem &system, const std::vector<Form> &forms,
                  size_t next) const;

  const Loop &loop;
  std::vector<Meeting> pairs;   ///< each once
  std::vector<Meeting> ordered; ///< both ways
};

} // namespace baechi::loops

#endif // BAECHI_LIB_LOOPS_CONFLICTS_H

//===- UsageTree.h - Bytes over time that change ----------------*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef BAECHI_LIB_PLACEMENT_CHOICE_USAGETREE_H
#define BAECHI_LIB_PLACEMENT_CHOICE_USAGETREE_H

#include <cstddef>
#include <cstdint>
#include <vector>

namespace baechi::placement::choice {

/// Bytes above the capacity in each slot, in a segment tree: adding to a
/// stretch and asking for the most takes the logarithm of the slots.
class UsageTree {
public:
  explicit UsageTree(const std::vector<double> &excess);

  /// Adds to the slots of [begin, end).
  void add(int32_t begin, int32_t end, double bytes);
  /// The most bytes above the capacity; minus infinity without slots.
  double most() const { return highest[1]; }
  /// The first slot that has the most.
  int32_t fullest() const;

private:
  size_t leaves;
  /// Of the slots below a node, without what is added at those above it.
  std::vector<double> highest;
  std::vector<double> added;
};

} // namespace baechi::placement::choice

#endif // BAECHI_LIB_PLACEMENT_CHOICE_USAGETREE_H

//===- ConflictPacking.h - Offsets by the conflicts of buffers -*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef BAECHI_LIB_TRANSFORMS_CONFLICTPACKING_H
#define BAECHI_LIB_TRANSFORMS_CONFLICTPACKING_H

#include "ArenaPlan.h"
#include "llvm/ADT/SmallVector.h"

namespace baechi {

/// Offsets for one order of buffers, each at the lowest gap between those
/// placed before that are live at the same time; and a local search over
/// orders.
class ConflictPacking {
public:
  /// Pairs of buffers that are live together: what an instance is made of.
  static int64_t countConflicts(llvm::ArrayRef<Buffer> buffers);

  explicit ConflictPacking(llvm::ArrayRef<Buffer> buffers);

  /// Tries orders by size, by area and by number of conflicts, then improves
  /// the best until it has \p bound bytes or \p visits neighbours were looked
  /// at. Offsets begin at 0. Returns what is best, but no more than \p best
  /// (nullopt), with its name.
  std::optional<Packing> run(int64_t bound, int64_t best, int64_t visits,
                             llvm::SmallVectorImpl<int64_t> &offsets);

private:
  using Order = llvm::SmallVector<int32_t>;

  /// The arena's bytes; stops early, with any number >= \p stop, when it is no
  /// smaller.
  int64_t place(llvm::ArrayRef<int32_t> order, int64_t stop);
  void tryOrder(Order order, llvm::StringLiteral name, int64_t bound);
  void improve(int64_t bound);
  /// An order near the best one.
  Order neighbour(int64_t bound);
  uint32_t draw(uint32_t below);

  llvm::ArrayRef<int32_t> conflictsOf(int32_t id) const {
    return llvm::ArrayRef(conflicts).slice(begin[id],
                                           begin[id + 1] - begin[id]);
  }

  llvm::ArrayRef<Buffer> buffers;
  /// Neighbours of buffer i: conflicts[begin[i]..begin[i + 1]).
  std::vector<int32_t> conflicts;
  std::vector<int64_t> begin;
  std::vector<int64_t> placed; ///< offsets of the last order, -1: none
  std::vector<std::pair<int64_t, int64_t>> near;
  int64_t visitsLeft = 0;
  uint64_t state = 1; ///< of the random numbers

  Order bestOrder;
  std::vector<int64_t> bestOffsets;
  Packing bestPacking;
};

} // namespace baechi

#endif // BAECHI_LIB_TRANSFORMS_CONFLICTPACKING_H

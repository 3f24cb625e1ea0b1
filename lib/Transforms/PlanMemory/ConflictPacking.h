//===- ConflictPacking.h - Offsets by the conflicts of buffers -*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef BAECHI_LIB_TRANSFORMS_PLANMEMORY_CONFLICTPACKING_H
#define BAECHI_LIB_TRANSFORMS_PLANMEMORY_CONFLICTPACKING_H

#include "ArenaPlan.h"
#include "llvm/ADT/SmallVector.h"

namespace baechi {

/// Offsets for one order of buffers, each at the lowest gap between those
/// placed before that are live at the same time; and a local search over
/// orders.
class ConflictPacking {
public:
  explicit ConflictPacking(llvm::ArrayRef<Buffer> buffers) : buffers(buffers) {}

  /// Tries orders by size, by area and by number of conflicts, then improves
  /// the best until it has \p bound bytes or \p visits placed buffers were
  /// looked at. Offsets begin at 0. Returns what is best, with its name, where
  /// that is less than \p best; else nullopt.
  std::optional<Packing> run(int64_t bound, int64_t best, int64_t visits,
                             llvm::SmallVectorImpl<int64_t> &found);

private:
  using Order = llvm::SmallVector<int32_t>;
  struct Placed {
    int64_t from, to;
    int32_t first, last;
  };

  /// The arena's bytes, or any number >= \p stop when they are not less or no
  /// visits are left.
  int64_t place(llvm::ArrayRef<int32_t> order, int64_t stop);
  void tryOrder(Order order, llvm::StringLiteral name, int64_t bound);
  void improve(int64_t bound);
  /// An order near the best one.
  Order neighbour(int64_t bound);
  /// A buffer that is live with \p id, if one is soon found.
  int32_t drawConflict(int32_t id);
  llvm::SmallVector<int64_t> countConflicts() const;
  uint32_t draw(uint32_t below);

  llvm::ArrayRef<Buffer> buffers;
  std::vector<Placed> placed; ///< of the last order, by `from`
  std::vector<int64_t> offsets;
  int64_t visitsLeft = 0;
  uint64_t state = 1; ///< of the random numbers

  Order bestOrder;
  std::vector<int64_t> bestOffsets;
  Packing bestPacking;
};

} // namespace baechi

#endif // BAECHI_LIB_TRANSFORMS_PLANMEMORY_CONFLICTPACKING_H

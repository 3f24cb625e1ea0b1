//===- ArenaPlan.h - Offsets for buffers with lifetimes -*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef BAECHI_LIB_TRANSFORMS_ARENAPLAN_H
#define BAECHI_LIB_TRANSFORMS_ARENAPLAN_H

#include "llvm/ADT/ArrayRef.h"
#include <cstdint>

namespace baechi {

/// A buffer that is live at the positions first..last, both included.
struct Buffer {
  int64_t bytes = 0;
  int32_t first = 0, last = 0;
  int64_t offset = 0;
};

/// Gives every buffer an offset >= \p base such that two that are live at one
/// position do not overlap, and returns the end of the highest. Sizes are
/// multiples of the alignment, so offsets are too. Greedy by size, and by
/// order of birth; the smaller of the two arenas is kept (Pisarchyk & Lee,
/// "Efficient Memory Management for Deep Neural Net Inference", 2020).
int64_t assignOffsets(llvm::MutableArrayRef<Buffer> buffers, int64_t base);

/// The most bytes live at one position, and that position.
std::pair<int64_t, int32_t> livePeak(llvm::ArrayRef<Buffer> buffers);

/// Checks, independently of how offsets were found, that no two buffers share
/// a byte at one position; returns the two that do otherwise.
std::optional<std::pair<size_t, size_t>>
findOverlap(llvm::ArrayRef<Buffer> buffers);

} // namespace baechi

#endif // BAECHI_LIB_TRANSFORMS_ARENAPLAN_H

//===- ArenaPlan.h - Offsets for buffers with lifetimes -*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef BAECHI_LIB_TRANSFORMS_PLANMEMORY_ARENAPLAN_H
#define BAECHI_LIB_TRANSFORMS_PLANMEMORY_ARENAPLAN_H

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringRef.h"
#include <cstdint>
#include <limits>
#include <optional>

namespace baechi {

/// A buffer that is live at the positions first..last, both included.
struct Buffer {
  int64_t bytes = 0;
  int32_t first = 0, last = 0;
  int64_t offset = 0;
};

/// What a packing came to.
struct Packing {
  int64_t bytes = 0;  ///< the end of the highest buffer
  llvm::StringRef by; ///< the heuristic that found it
};

/// Gives every buffer an offset >= \p base such that two that are live at one
/// position do not overlap. Sizes are multiples of the alignment, so offsets
/// are too. The best of several heuristics: allocation in order of birth and,
/// backwards, of death, first and best fit; greedy orders and a search over
/// them (ConflictPacking.h) where the live bytes are not reached.
/// Deterministic, near linear: what is quadratic has a budget, a small one
/// where the live bytes alone are above \p limit, as then no offsets help.
/// \p onlyFits: the first that are within the limit are good enough.
Packing assignOffsets(llvm::MutableArrayRef<Buffer> buffers, int64_t base,
                      int64_t limit = std::numeric_limits<int64_t>::max(),
                      bool onlyFits = false);

/// The same where no byte is used again before \p rest positions have passed
/// since its last use, or as many as half, a fourth and so on of that, with
/// which the arena has at most \p most bytes. Where none is found, offsets stay
/// as they are and nothing is returned.
std::optional<Packing> assignRested(llvm::MutableArrayRef<Buffer> buffers,
                                    int64_t base, int32_t rest, int64_t most);

/// The most bytes live at one position, and that position.
std::pair<int64_t, int32_t> livePeak(llvm::ArrayRef<Buffer> buffers);

/// Checks, independently of how offsets were found, that no two buffers share
/// a byte at one position; returns the two that do otherwise.
std::optional<std::pair<size_t, size_t>>
findOverlap(llvm::ArrayRef<Buffer> buffers);

} // namespace baechi

#endif // BAECHI_LIB_TRANSFORMS_PLANMEMORY_ARENAPLAN_H

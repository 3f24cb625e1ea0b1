//===- Packing.h - Items that do not go into bins ---------------*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Lower bounds of bin packing, for bins of any sizes.
///
//===----------------------------------------------------------------------===//
#ifndef BAECHI_LIB_PLACEMENT_MEMORY_PACKING_H
#define BAECHI_LIB_PLACEMENT_MEMORY_PACKING_H

#include <cstdint>
#include <optional>
#include <span>

namespace baechi::placement::memory {

/// Why items do not go into bins: their sizes, in whole pieces of so many
/// bytes, add up to `needed` pieces, and the bins hold `available`.
struct PackingProof {
  int64_t piece;
  __int128 needed;
  __int128 available;
  /// They are no pieces but bins of that size.
  bool inBins = false;
};

/// A proof that \p items, sizes in bytes, do not go into \p bins; none when it
/// is not found. Two families of bounds: sums in pieces of size c, for every c
/// just above a bin's size over an integer, since the floors of x/c in a bin
/// add up to no more than the floor of its size over c (a dual feasible
/// function; Fekete & Schepers 2001); and L2 of Martello & Toth (1990) for the
/// largest bin's size.
std::optional<PackingProof> provePackingFails(std::span<const int64_t> items,
                                              std::span<const int64_t> bins);

} // namespace baechi::placement::memory

#endif // BAECHI_LIB_PLACEMENT_MEMORY_PACKING_H

//===- BlockLayout.h - Blocks of a loop and pieces of arrays -*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef BAECHI_LIB_TRANSFORMS_LOOPS_BLOCKLAYOUT_H
#define BAECHI_LIB_TRANSFORMS_LOOPS_BLOCKLAYOUT_H

#include "Baechi/Loops/Choice.h"
#include "LoopModel.h"

namespace baechi {

/// How an array is kept while a loop runs in blocks: whole, or cut along a
/// dimension by the parts of an axis, each piece as long as the longest,
/// between halos: copies of what the neighbours begin and end with.
struct Pieces {
  enum class Kind : uint8_t {
    Whole,
    Cut,
    Reduced,  ///< each block sums up for itself
    Buffered, ///< each block of a clock changes a copy of its own
    /// Each block takes the rows that it touches, from whoever had them last.
    Moving,
  };
  /// Along diagonals: what is cut are the positions in the dimension, and
  /// `multiple` times those in `other`, and `offset`, with which they begin at
  /// 0.
  struct Shear {
    unsigned other = 0;
    int64_t multiple = 0, offset = 0;
  };
  /// Rows of another piece that a halo has.
  struct Halo {
    size_t piece = 0;
    int64_t first = 0, end = 0;
  };

  Kind kind = Kind::Whole;
  bool written = false;
  size_t axis = 0;
  unsigned dimension = 0;
  /// Where the pieces begin without their halos, and the end.
  llvm::SmallVector<int64_t> bounds;
  int64_t below = 0, above = 0;
  std::optional<Shear> shear;
  /// By block, of what moves: the rows that it reads or writes, and what its
  /// writes lie in.
  std::vector<loops::Span> touched, changed;

  bool isCut() const { return kind == Kind::Cut; }
  bool isMoving() const { return kind == Kind::Moving; }
  size_t count() const { return isCut() ? bounds.size() - 1 : 1; }
  /// Which piece a block works on.
  size_t part(llvm::ArrayRef<int32_t> parts) const {
    return isCut() ? parts[axis] : 0;
  }
  /// The position that a piece begins at, with its halo.
  int64_t first(size_t part) const { return bounds[part] - below; }
  /// How long each piece is, with its halos.
  int64_t length() const;
  llvm::SmallVector<Halo> halos(size_t part) const;
  llvm::SmallVector<int64_t> shape(llvm::ArrayRef<int64_t> whole) const;
};

struct BlockLayout {
  loops::Verdict verdict;
  loops::Schedule schedule;
  std::vector<Pieces> pieces; ///< one an array
  /// What was simulated, this and others.
  std::string choice;
};

/// How \p model, of a loop over ranges that are numbers, runs in the blocks of
/// \p workers; nothing, and \p why, where it cannot. \p entries: how many there
/// are, of key arrays.
std::optional<BlockLayout> layOut(const loops::Loop &model, int32_t workers,
                                  std::optional<int64_t> entries,
                                  std::string &why);

} // namespace baechi

#endif // BAECHI_LIB_TRANSFORMS_LOOPS_BLOCKLAYOUT_H

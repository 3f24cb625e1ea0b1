//===- Boxes.h - Parts of tensors -------------------------------*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef BAECHI_LIB_PLACEMENT_MODEL_BOXES_H
#define BAECHI_LIB_PLACEMENT_MODEL_BOXES_H

#include "Baechi/Placement/Model/Alternatives.h"

namespace baechi::placement {

/// A range of each dimension of a tensor, half open. A tensor without a shape
/// has none, and is one part.
struct Box {
  std::vector<std::pair<int64_t, int64_t>> ranges;

  static Box whole(const std::vector<int64_t> &shape);
  int64_t volume() const;
  bool meets(const Box &other) const;
  bool contains(const Box &other) const;

  bool operator==(const Box &) const = default;
};

/// The pieces of an operator over one tensor.
class Layout {
public:
  /// \p cut of a tensor of this shape by so many pieces.
  Layout(const Cut &cut, const std::vector<int64_t> &shape, int32_t pieces);

  int32_t slices() const { return static_cast<int32_t>(boxes.size()); }
  /// Pieces that have the same slice.
  int32_t copies() const { return pieces / slices(); }
  const Box &box(int32_t slice) const { return boxes[slice]; }
  int32_t sliceOf(int32_t piece) const { return piece / copies(); }
  /// The piece that a reader's piece \p lane takes a slice from.
  int32_t holder(int32_t slice, int32_t lane) const {
    return slice * copies() + lane % copies();
  }

private:
  int32_t pieces;
  std::vector<Box> boxes;
};

/// \p box cut wherever one of \p readers begins or ends within it: the last
/// dimension changes first.
std::vector<Box> atoms(const Box &box, const std::vector<const Box *> &readers);

} // namespace baechi::placement

#endif // BAECHI_LIB_PLACEMENT_MODEL_BOXES_H

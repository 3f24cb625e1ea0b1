//===- LeastLevel.h - What may be done by a moment --------------*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// The bytes that are held between two operators are those of tensors whose
/// producer is done and of whose users one is not. Over all sets that may be
/// done at that moment this is least for a minimum cut: a separator, and, with
/// what the next operator needs, a floor of every order.
///
//===----------------------------------------------------------------------===//
#ifndef BAECHI_LIB_PLACEMENT_MEMORY_LEASTLEVEL_H
#define BAECHI_LIB_PLACEMENT_MEMORY_LEASTLEVEL_H

#include "Model/Model.h"

namespace baechi::placement::memory {

/// When an operator runs, seen from a moment.
enum class When : uint8_t { Either, Before, After };

/// An operator that runs before another one, though nothing else says so.
struct Precedence {
  int32_t first, then;
};

class LeastLevel {
public:
  /// \p bytes: of every tensor.
  LeastLevel(const Model &model, std::span<const int64_t> bytes);

  /// Puts all \p open nodes, which are those that are `Either` in \p when,
  /// before or after the moment, so that fewest bytes are held then; among
  /// equals as many after it as can be. What others wait for is before them,
  /// as it must be for the rest already. A node that is not where \p rather has
  /// it, unless that is empty, costs \p price bytes. Looks at about \p steps
  /// nodes and arcs at the most, which it lowers; false, with some left open,
  /// where that is not enough.
  bool decide(std::span<const int32_t> open, std::vector<When> &when,
              std::span<const Precedence> further, int64_t &steps,
              std::span<const When> rather = {}, int64_t price = 0);

  /// Bytes that are held for later once all that is before the moment is done,
  /// resident ones aside.
  int64_t held(std::span<const When> when) const;

private:
  const Model &model;
  std::span<const int64_t> bytes;
  bool tooLarge;                 ///< sums of bytes may overflow
  std::vector<int32_t> atNode;   ///< node -> of the network
  std::vector<uint8_t> isListed; ///< per tensor
  std::vector<int32_t> tensors;  ///< that open nodes make or read
};

} // namespace baechi::placement::memory

#endif // BAECHI_LIB_PLACEMENT_MEMORY_LEASTLEVEL_H

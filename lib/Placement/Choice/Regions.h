//===- Regions.h - A choice improved part by part ---------------*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Large neighbourhood search (Shaw 1998): a connected part of the nodes is
/// chosen anew, exactly up to a few of them, beside the others as they are and
/// at the prices of bytes; what exceeds the limit then is repaired, and what
/// costs no less is taken back.
///
//===----------------------------------------------------------------------===//
#ifndef BAECHI_LIB_PLACEMENT_CHOICE_REGIONS_H
#define BAECHI_LIB_PLACEMENT_CHOICE_REGIONS_H

#include "Choice/Descent.h"

#include <array>

namespace baechi::placement::choice {

class Regions {
public:
  /// \p start keeps the limit.
  Regions(const Core &core, const Strategies &start, Random &random,
          WorkMeter &meter);

  /// Tries one region. Returns by how much the choice got cheaper.
  double improve(const Costs &priced);

  const Strategies &choice() const { return state.choice(); }

private:
  std::vector<int32_t> draw(size_t count, int32_t without);

  static constexpr std::array<size_t, 5> sizes = {10, 30, 100, 300, 1000};

  const Core &core;
  Random &random;
  WorkMeter &meter;
  Descent state;
  Costs mixed; ///< priced by the region's factor; of the others, anything
  std::vector<int32_t> mark; ///< the last region that a node was in
  int32_t round = 0;
  std::array<uint64_t, sizes.size()> spent = {}; ///< entries by size
};

} // namespace baechi::placement::choice

#endif // BAECHI_LIB_PLACEMENT_CHOICE_REGIONS_H

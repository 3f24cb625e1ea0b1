//===- TransferTimes.h - What moving between layouts takes ------*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef BAECHI_LIB_PLACEMENT_CUTS_TRANSFERTIMES_H
#define BAECHI_LIB_PLACEMENT_CUTS_TRANSFERTIMES_H

#include "Baechi/Placement/Choice/SolveChoice.h"
#include "Baechi/Placement/Model/Alternatives.h"
#include "Baechi/Placement/Model/PlaceOptions.h"

#include <map>
#include <unordered_map>
#include <vector>

namespace baechi::placement::cuts {

/// So that sums of a million of them stay far below infiniteCost.
constexpr int64_t costly = infiniteCost / 10'000'000;

/// As an integer, and no more than `costly`.
int64_t bounded(double value);

/// What moving a tensor from one layout to another takes. Models repeat
/// themselves: each two layouts are looked at once.
class TransferTimes {
public:
  /// \p machine must outlive it; \p devices: those of the lanes.
  TransferTimes(const Machine &machine, Objective objective,
                std::vector<int32_t> devices)
      : machine(machine), objective(objective), devices(std::move(devices)) {}

  struct Maker {
    std::vector<int64_t> shape;
    int64_t bytes = 0;
    int32_t pieces = 1;
    OutputCut made;
  };
  struct Reader {
    int32_t pieces = 1;
    Cut cut;
    int64_t extra = 0;
  };
  /// The number of a layout, the same for equal ones.
  int32_t numberOf(const Maker &maker);
  int32_t numberOf(const Reader &reader);
  int64_t ns(int32_t maker, int32_t reader);

private:
  int64_t compute(const Maker &maker, const Reader &reader) const;

  const Machine &machine;
  Objective objective;
  std::vector<int32_t> devices;
  std::vector<Maker> makers;
  std::vector<Reader> readers;
  std::map<std::vector<int64_t>, int32_t> makerNumbers, readerNumbers;
  std::unordered_map<uint64_t, int64_t> known;
};

} // namespace baechi::placement::cuts

#endif // BAECHI_LIB_PLACEMENT_CUTS_TRANSFERTIMES_H

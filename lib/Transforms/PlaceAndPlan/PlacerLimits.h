//===- PlacerLimits.h - Limits that a plan has taught -*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef BAECHI_LIB_TRANSFORMS_PLACEANDPLAN_PLACERLIMITS_H
#define BAECHI_LIB_TRANSFORMS_PLACEANDPLAN_PLACERLIMITS_H

#include "Baechi/Placement/Model/Pool.h"
#include "Baechi/Placement/Model/Problem.h"
#include "Baechi/Transforms/Passes.h"
#include "llvm/ADT/STLExtras.h"

namespace baechi {

/// The limits that the placer sees, lowered where a plan exceeds the true one.
class PlacerLimits {
public:
  explicit PlacerLimits(const placement::Machine &machine)
      : shown(machine), areMany(placement::numComputing(machine) > 1) {
    for (const placement::Device &device : machine.devices)
      tooHigh.push_back(device.memory);
    tooLow.assign(tooHigh.size(), 0);
  }

  const placement::Machine &machine() const { return shown; }

  /// A plan for these limits needed \p arenas: takes off what was missing, or
  /// what the plan needs beyond the promise where that is more. \p all: the
  /// other devices' limits, too, in proportion. False when no arena exceeds its
  /// limit.
  bool lower(llvm::ArrayRef<ArenaReport> arenas, bool all) {
    bool exceeded = false;
    double smallest = 1;
    for (auto [device, arena] : llvm::zip(shown.devices, arenas)) {
      if (arena.bytes <= arena.limit)
        continue;
      int64_t beyond = arena.bytes - std::max<int64_t>(arena.promised, 1);
      tooHigh[&device - shown.devices.data()] = device.memory;
      int64_t &low = tooLow[&device - shown.devices.data()];
      int64_t lowered =
          std::min(device.memory - (arena.bytes - arena.limit),
                   arena.promised > 0 ? arena.limit - beyond : device.memory);
      // Nothing was found there.
      if (low > 0 && lowered <= low && device.memory - low > 1)
        lowered = low + (device.memory - low) / 2;
      device.memory = std::max<int64_t>(1, lowered);
      smallest = std::min(smallest, static_cast<double>(device.memory) /
                                        static_cast<double>(arena.limit));
      exceeded = true;
    }
    if (all && exceeded)
      for (auto [device, arena] : llvm::zip(shown.devices, arenas))
        device.memory = std::min(device.memory,
                                 static_cast<int64_t>(smallest * arena.limit));
    return exceeded;
  }

  /// Whether nothing was placed within exactly these limits before, with as
  /// much effort or more.
  bool areInVain() const { return llvm::is_contained(inVain, bytesOf(shown)); }
  /// No placement meets these limits: lets the placer take so many bytes more
  /// on each device that computes, for plans which may need less. False: that
  /// is none.
  bool allowBeyond(int64_t bytes) {
    inVain.push_back(bytesOf(shown));
    if (bytes == 0)
      return false;
    for (auto [device, high] : llvm::zip(shown.devices, tooHigh))
      if (!placement::isPool(device))
        high = device.memory += bytes;
    return true;
  }

  /// No placement meets these limits: half of the way back to the last ones.
  /// False when there is nothing in between.
  bool raise() {
    inVain.push_back(bytesOf(shown));
    bool raised = false;
    for (auto [device, high, low] : llvm::zip(shown.devices, tooHigh, tooLow)) {
      int64_t between = high - device.memory;
      raised |= between > 1;
      // That nothing was placed says nothing of limits which are as they were.
      if (between > 0)
        low = device.memory;
      device.memory += between / 2;
    }
    return raised;
  }

  /// Whether on several devices so little is between these limits and higher
  /// ones that what is moved to keep one is mostly more.
  bool areClose() const {
    return areMany &&
           llvm::all_of(llvm::zip(shown.devices, tooHigh),
                        [](const auto &pair) {
                          auto &[device, high] = pair;
                          return high - device.memory <= high / fewOf;
                        });
  }

private:
  static std::vector<int64_t> bytesOf(const placement::Machine &machine) {
    std::vector<int64_t> bytes;
    for (const placement::Device &device : machine.devices)
      bytes.push_back(device.memory);
    return bytes;
  }

  static constexpr int64_t fewOf = 200;
  placement::Machine shown;
  bool areMany; ///< devices that compute
  /// A plan for these exceeded its limit; the true limits at first.
  std::vector<int64_t> tooHigh;
  std::vector<std::vector<int64_t>> inVain;
  /// Nothing was placed within these; 0: no such limit is known.
  std::vector<int64_t> tooLow;
};

} // namespace baechi

#endif // BAECHI_LIB_TRANSFORMS_PLACEANDPLAN_PLACERLIMITS_H

//===- MemoryReport.cpp - What was needed and what there is -----*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Memory/Memory.h"
#include "Memory/Orders.h"
#include "Memory/PeakEstimate.h"

#include <fmt/format.h>

#include <algorithm>

using namespace baechi::placement;
using namespace baechi::placement::memory;

namespace {

/// The same machine with its memories multiplied by \p thousandths / 1000.
Machine scaled(const Machine &machine, int64_t thousandths) {
  Machine result = machine;
  for (Device &device : result.devices)
    device.memory = static_cast<int64_t>(std::min<__int128>(
        static_cast<__int128>(device.memory) * thousandths / 1000, never));
  return result;
}

/// By how much the memories must grow for \p peaks, in thousandths; nothing
/// when they cannot.
std::optional<int64_t> growthFor(const Model &model,
                                 std::span<const int64_t> peaks) {
  __int128 most = 1000;
  for (int32_t d = 0; d < model.numDevices; ++d) {
    __int128 memory = model.deviceMemory(d);
    if (peaks[d] <= memory)
      continue;
    if (memory == 0)
      return std::nullopt;
    most = std::max(
        most, (static_cast<__int128>(peaks[d]) * 1000 + memory - 1) / memory);
  }
  constexpr int64_t absurd = 1'000'000;
  return most < absurd ? std::optional(static_cast<int64_t>(most))
                       : std::nullopt;
}

/// How much memory would do, by a few tries between what is there and what the
/// closest assignment needs.
std::string mend(const Problem &problem, const Model &model,
                 const Assignment &closest, std::span<const int64_t> peaks) {
  std::optional<int64_t> enough = growthFor(model, peaks);
  if (!enough)
    return "";
  constexpr int tries = 5;
  constexpr RepairEffort effort{100, 2'000'000};
  int64_t tooLittle = 1000;
  for (int k = 0; k < tries && *enough - tooLittle > 10; ++k) {
    int64_t middle = tooLittle + (*enough - tooLittle) / 2;
    Machine machine = scaled(problem.machine, middle);
    Model larger = model;
    larger.machine = &machine;
    Assignment device = closest;
    bool fits = proveInfeasible(problem, larger).why.empty() &&
                repair(larger, device, effort);
    (fits ? *enough : tooLittle) = middle;
  }
  Machine machine = scaled(problem.machine, *enough);
  bool even = std::all_of(
      machine.devices.begin(), machine.devices.end(), [&](const Device &each) {
        return each.memory == machine.devices.front().memory;
      });
  if (even)
    return fmt::format("\nwith {} on {} a placement was found",
                       sizeText(machine.devices.front().memory, " bytes"),
                       machine.devices.size() > 1 ? "every device" : "it");
  return fmt::format("\nwith {}.{:03} times the memory on every device a "
                     "placement was found",
                     *enough / 1000, *enough % 1000);
}

/// Who holds most on the device that is most above its limit, when it is.
std::string culprits(const Problem &problem, const Model &model,
                     const Assignment &device) {
  PeakEstimate estimate(model);
  estimate.excess(device);
  int32_t fullest = 0;
  auto over = [&](int32_t d) {
    return estimate.peaks()[d] - model.deviceMemory(d);
  };
  for (int32_t d = 1; d < model.numDevices; ++d)
    if (over(d) > over(fullest))
      fullest = d;
  auto held = estimate.heldAt(estimate.peakOf(fullest), device, fullest);
  std::vector<std::pair<int64_t, Unit>> largest;
  for (Unit u = 0; u < model.numUnits; ++u)
    if (held[u] > 0)
      largest.emplace_back(-held[u], u);
  constexpr size_t shown = 5;
  size_t count = std::min(shown, largest.size());
  std::partial_sort(largest.begin(),
                    largest.begin() + static_cast<ptrdiff_t>(count),
                    largest.end());
  std::string text = fmt::format("\nthe largest on {} are",
                                 problem.machine.devices[fullest].name);
  for (size_t k = 0; k < count; ++k)
    text += fmt::format("\n  {} with {}",
                        unitName(problem, model, largest[k].second),
                        sizeText(-largest[k].first, " bytes"));
  return count > 0 ? text : "";
}

} // namespace

std::string baechi::placement::memory::explainMemory(const Problem &problem,
                                                     const Model &model,
                                                     const Assignment &device) {
  std::vector<int64_t> peaks = leastPeaks(model, device);
  std::string text = "\nthe closest that was found needs";
  __int128 needed = 0, available = 0;
  for (int32_t d = 0; d < model.numDevices; ++d) {
    int64_t memory = model.deviceMemory(d);
    needed += peaks[d];
    available += memory;
    text += fmt::format("\n  {} of {} on {}", sizeText(peaks[d], " bytes"),
                        sizeText(memory), problem.machine.devices[d].name);
    if (peaks[d] > memory)
      text += fmt::format(", {} too many", sizeText(peaks[d] - memory));
  }
  if (model.numDevices > 1)
    text += fmt::format("\n  {} of {} in all", sizeText(needed, " bytes"),
                        sizeText(available));
  return text + culprits(problem, model, device) +
         mend(problem, model, device, peaks);
}

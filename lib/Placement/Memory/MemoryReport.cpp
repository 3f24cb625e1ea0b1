//===- MemoryReport.cpp - Why nothing fits ----------------------*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Memory/Memory.h"
#include "Memory/Orders.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <numeric>

using namespace baechi::placement;

namespace {

std::string nodeName(const Problem &problem, int32_t i) {
  return fmt::format("operator {} '{}'", i, problem.graph.ops[i].name);
}

std::string unitName(const Problem &problem, const Model &model, Unit u) {
  int32_t first = model.members[u].front();
  if (const auto &group = problem.graph.ops[first].group)
    return fmt::format("group '{}' ({} operators)", *group,
                       model.members[u].size());
  return nodeName(problem, first);
}

/// What a node needs on its device at the least while it runs.
int64_t footprint(const Model &model, int32_t i) {
  int64_t bytes = model.unitResident[model.unit[i]] + model.scratch[i];
  // Without a duration nothing is held for its sake.
  auto [begin, end] = model.tensorsOf(i);
  for (int32_t t = begin; t < end; ++t)
    bytes += model.memory[t];
  for (int32_t t : model.operands[i]) {
    bool together = model.unit[model.producer[t]] == model.unit[i];
    bytes +=
        together ? model.memory[t] : std::min(model.memory[t], model.copy[t]);
  }
  return bytes;
}

/// A size for people, in brackets; nothing below 1 KiB.
std::string inUnits(double bytes) {
  if (bytes < 1024)
    return "";
  constexpr const char *units[] = {"KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
  size_t unit = 0;
  for (bytes /= 1024; bytes >= 1024 && unit + 1 < std::size(units); ++unit)
    bytes /= 1024;
  return fmt::format(" ({:.2f} {})", bytes, units[unit]);
}

} // namespace

std::string baechi::placement::sizeText(__int128 bytes, const char *what) {
  return fmt::format("{}{}{}", bytes, what,
                     inUnits(static_cast<double>(bytes)));
}

std::string baechi::placement::proveInfeasible(const Problem &problem,
                                               const Model &model) {
  __int128 room = 0, need = 0;
  for (int32_t d = 0; d < model.numDevices; ++d)
    room += model.deviceMemory(d);
  for (int32_t i = 0; i < model.numNodes; ++i)
    need += model.resident[i];
  if (need > room)
    return fmt::format("the resident bytes of all operators are {}, the "
                       "memories of all devices {}",
                       sizeText(need), sizeText(room));
  auto roomFor = [&](Unit u) {
    int64_t largest = -1;
    for (int32_t d = 0; d < model.numDevices; ++d)
      if (model.mayUse(u, d))
        largest = std::max(largest, model.deviceMemory(d));
    return largest;
  };
  for (Unit u = 0; u < model.numUnits; ++u)
    if (int64_t most = roomFor(u); model.unitResident[u] > most)
      return fmt::format("{} has {}, the largest device it may use "
                         "has {}",
                         unitName(problem, model, u),
                         sizeText(model.unitResident[u], " resident bytes"),
                         sizeText(most));
  for (int32_t i = 0; i < model.numNodes; ++i) {
    // An operator that takes no time need not hold its bytes.
    if (model.minTime(i) == 0)
      continue;
    if (int64_t most = roomFor(model.unit[i]), bytes = footprint(model, i);
        bytes > most)
      return fmt::format("{} needs {} at once (its group's resident "
                         "bytes, operands, results and scratch), the largest "
                         "device it may use has {}",
                         nodeName(problem, i), sizeText(bytes, " bytes"),
                         sizeText(most));
  }
  // Operators that only a set of devices can run share its memory.
  std::map<std::vector<uint8_t>, __int128> confined;
  for (Unit u = 0; u < model.numUnits; ++u) {
    auto row =
        model.allowed.begin() + static_cast<ptrdiff_t>(u) * model.numDevices;
    confined[std::vector<uint8_t>(row, row + model.numDevices)] +=
        model.unitResident[u];
  }
  for (const auto &[set, bytes] : confined) {
    __int128 memory = 0;
    std::string names;
    for (int32_t d = 0; d < model.numDevices; ++d)
      if (set[d]) {
        memory += model.deviceMemory(d);
        names += (names.empty() ? "" : ", ") + problem.machine.devices[d].name;
      }
    if (bytes > memory)
      return fmt::format("the operators that can run only on {} have {}, "
                         "these devices hold {}",
                         names, sizeText(bytes, " resident bytes"),
                         sizeText(memory));
  }
  return "";
}

std::string baechi::placement::explainMemory(const Problem &problem,
                                             const Model &model,
                                             const Assignment &device) {
  std::vector<int64_t> best = leastPeaks(model, device);
  int64_t least = excessOf(model, best);
  std::string text = "the closest packing found";
  if (least > 0)
    text +=
        fmt::format(" is {} over its limits: it", sizeText(least, " bytes"));
  text += " needs";
  __int128 needed = 0, available = 0;
  for (int32_t d = 0; d < model.numDevices; ++d) {
    needed += best[d];
    available += model.deviceMemory(d);
    text += fmt::format(
        "{} {} of {} on {}", d ? "," : "", sizeText(best[d], " bytes"),
        sizeText(model.deviceMemory(d)), problem.machine.devices[d].name);
  }
  if (model.numDevices > 1)
    text += fmt::format(", in all {} of {}", sizeText(needed, " bytes"),
                        sizeText(available));
  std::vector<std::tuple<int64_t, Unit>> largest;
  for (Unit u = 0; u < model.numUnits; ++u) {
    int64_t bytes = model.unitResident[u];
    for (int32_t i : model.members[u]) {
      int64_t held = model.scratch[i];
      auto [begin, end] = model.tensorsOf(i);
      for (int32_t t = begin; t < end; ++t)
        held += model.memory[t];
      bytes = std::max(bytes, model.unitResident[u] + held);
    }
    largest.emplace_back(-bytes, u);
  }
  constexpr size_t shown = 5;
  size_t count = std::min(shown, largest.size());
  std::partial_sort(largest.begin(),
                    largest.begin() + static_cast<ptrdiff_t>(count),
                    largest.end());
  text += "; the largest are";
  for (size_t k = 0; k < count; ++k)
    text += fmt::format("{} {} with {}", k ? "," : "",
                        unitName(problem, model, std::get<1>(largest[k])),
                        sizeText(-std::get<0>(largest[k]), " bytes"));
  return text;
}

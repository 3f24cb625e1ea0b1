//===- Text.cpp - Bytes and culprits in words -------------------*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Memory/Text.h"

#include <fmt/format.h>

using namespace baechi::placement;

namespace {

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

std::string baechi::placement::nodeName(const Problem &problem, int32_t i) {
  return fmt::format("operator {} '{}'", i, problem.graph.ops[i].name);
}

std::string baechi::placement::unitName(const Problem &problem,
                                        const Model &model, Unit u) {
  int32_t first = model.members[u].front();
  if (const auto &group = problem.graph.ops[first].group)
    return fmt::format("group '{}' ({} operators)", *group,
                       model.members[u].size());
  return nodeName(problem, first);
}

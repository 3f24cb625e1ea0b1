//===- SweepMemory.cpp - Memories to sweep over -----------------*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Baechi/Placement/Sweep.h"

#include <fmt/format.h>

#include <charconv>
#include <cmath>

using namespace baechi::placement;

std::string baechi::placement::parseSweepMemory(std::string_view text,
                                                SweepMemory &memory) {
  memory = {};
  if (text == "own")
    return "";
  double value = 0;
  auto [rest, error] =
      std::from_chars(text.data(), text.data() + text.size(), value);
  std::string_view unit(rest, text.data() + text.size() - rest);
  static constexpr std::pair<std::string_view, double> units[] = {
      {"", 1},      {"B", 1},        {"kB", 1e3}, {"KiB", 0x1p10},
      {"MB", 1e6},  {"MiB", 0x1p20}, {"GB", 1e9}, {"GiB", 0x1p30},
      {"TB", 1e12}, {"TiB", 0x1p40}};
  if (error == std::errc() && std::isfinite(value) && value >= 0) {
    if (unit == "%") {
      memory = {SweepMemory::Kind::Share, value};
      return "";
    }
    for (const auto &[name, factor] : units)
      if (unit == name && value * factor < 0x1p60) {
        memory = {SweepMemory::Kind::Bytes, value * factor};
        return "";
      }
  }
  return fmt::format("unknown memory '{}': use own (as the machine has it), a "
                     "size such as 8GiB, or a share of what one device alone "
                     "needs such as 50%",
                     text);
}

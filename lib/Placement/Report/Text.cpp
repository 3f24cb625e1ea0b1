//===- Text.cpp - Numbers for people ----------------------------*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Report/Text.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>

std::string baechi::placement::bytesText(int64_t bytes) {
  constexpr const char *units[] = {"KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
  if (bytes > -1024 && bytes < 1024)
    return fmt::format("{} B", bytes);
  auto value = static_cast<double>(bytes) / 1024;
  size_t unit = 0;
  // What would be printed as 1024.0 belongs to the next unit.
  while (std::abs(value) >= 1023.95 && unit + 1 < std::size(units)) {
    value /= 1024;
    ++unit;
  }
  return fmt::format("{:.1f} {}", value, units[unit]);
}

std::string baechi::placement::millisecondsText(int64_t ns) {
  // Not "0.000 ms" for what takes time.
  if (ns != 0 && ns > -1000 && ns < 1000)
    return fmt::format("{} ns", ns);
  return fmt::format("{:.3f} ms", static_cast<double>(ns) / 1e6);
}

bool baechi::placement::inNanoseconds(int64_t ns, int64_t beside) {
  auto isShort = [](int64_t t) { return t != 0 && t > -1000 && t < 1000; };
  return (isShort(ns) || isShort(beside)) &&
         std::max(std::abs(ns), std::abs(beside)) < 1'000'000;
}

std::string baechi::placement::millisecondsText(int64_t ns, int64_t beside) {
  if (inNanoseconds(ns, beside))
    return fmt::format("{} ns", ns);
  return fmt::format("{:.3f} ms", static_cast<double>(ns) / 1e6);
}

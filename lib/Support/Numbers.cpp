//===- Numbers.cpp - Bytes and times for people ---------------------------===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Baechi/Support/Numbers.h"

#include <cmath>
#include <cstdio>
#include <iterator>

/// Without fmt, which the runtime's programs would have to bring.
static std::string fixed(double number, int digits) {
  int size = std::snprintf(nullptr, 0, "%.*f", digits, number);
  std::string text(static_cast<size_t>(size) + 1, '\0');
  std::snprintf(text.data(), text.size(), "%.*f", digits, number);
  text.pop_back();
  return text;
}

std::string baechi::support::bytesText(double bytes, int digits) {
  constexpr const char *units[] = {"KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
  if (bytes > -1024 && bytes < 1024)
    return fixed(bytes, 0) + " B";
  double value = bytes / 1024;
  size_t unit = 0;
  // What would be printed as 1024.0 belongs to the next unit.
  double limit = 1024 - 0.5 * std::pow(10.0, -digits);
  while (std::abs(value) >= limit && unit + 1 < std::size(units)) {
    value /= 1024;
    ++unit;
  }
  return fixed(value, digits) + " " + units[unit];
}

std::string baechi::support::bytesTextUp(double bytes, int digits) {
  double scale = std::pow(10.0, digits), unit = 1024;
  if (bytes < unit)
    return bytesText(std::ceil(bytes), digits);
  while (bytes / unit >= 1024)
    unit *= 1024;
  return bytesText(std::ceil(bytes / unit * scale) / scale * unit, digits);
}

std::string baechi::support::millisecondsText(int64_t ns) {
  // Not "0.000 ms" for what takes time.
  if (ns != 0 && ns > -1000 && ns < 1000)
    return std::to_string(ns) + " ns";
  return fixed(static_cast<double>(ns) / 1e6, 3) + " ms";
}

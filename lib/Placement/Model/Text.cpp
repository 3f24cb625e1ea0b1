//===- Text.cpp - Numbers for people --------------------------------------===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Baechi/Placement/Model/Text.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdlib>
#include <numeric>
#include <utility>
#include <vector>

std::optional<int64_t> baechi::placement::parseBytes(std::string_view text) {
  // The longest first: every unit ends with the last one.
  static constexpr std::pair<std::string_view, double> units[] = {
      {"KiB", 0x1p10}, {"MiB", 0x1p20}, {"GiB", 0x1p30}, {"TiB", 0x1p40},
      {"PiB", 0x1p50}, {"EiB", 0x1p60}, {"KB", 1e3},     {"kB", 1e3},
      {"MB", 1e6},     {"GB", 1e9},     {"TB", 1e12},    {"PB", 1e15},
      {"EB", 1e18},    {"B", 1}};
  double unit = 1;
  for (auto [suffix, bytes] : units)
    if (text.ends_with(suffix)) {
      text.remove_suffix(suffix.size());
      unit = bytes;
      break;
    }
  while (!text.empty() && text.back() == ' ')
    text.remove_suffix(1);
  double number = 0;
  const char *end = text.data() + text.size();
  auto [rest, error] = std::from_chars(text.data(), end, number);
  if (error != std::errc() || rest != end || !(number >= 0) ||
      !(number * unit <= 9e18))
    return std::nullopt;
  return static_cast<int64_t>(number * unit);
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

size_t baechi::placement::editDistance(std::string_view a, std::string_view b,
                                       size_t limit) {
  if (std::max(a.size(), b.size()) - std::min(a.size(), b.size()) >= limit)
    return limit;
  std::vector<size_t> row(b.size() + 1), before, beforeThat;
  std::iota(row.begin(), row.end(), 0);
  for (size_t i = 1; i <= a.size(); ++i) {
    beforeThat = std::exchange(before, row);
    size_t least = row[0] = i;
    for (size_t j = 1; j <= b.size(); ++j) {
      size_t replaced = before[j - 1] + (a[i - 1] != b[j - 1]);
      row[j] = std::min({before[j] + 1, row[j - 1] + 1, replaced});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
        row[j] = std::min(row[j], beforeThat[j - 2] + 1);
      least = std::min(least, row[j]);
    }
    if (least >= limit)
      return limit;
  }
  return std::min(row.back(), limit);
}

std::string
baechi::placement::suggestion(std::string_view wrong,
                              const std::vector<std::string> &known) {
  // A third of it may be wrong.
  size_t least = std::max<size_t>(wrong.size() / 3 + 1, 2);
  const std::string *closest = nullptr;
  for (const std::string &word : known)
    if (size_t distance = editDistance(wrong, word, least); distance < least) {
      least = distance;
      closest = &word;
    }
  return closest ? fmt::format(" (did you mean '{}'?)", *closest) : "";
}

//===- SweepMemory.cpp - Memories to sweep over -----------------*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Baechi/Placement/Model/Text.h"
#include "Baechi/Placement/Study/Sweep.h"

#include <fmt/format.h>

#include <charconv>
#include <cmath>

using namespace baechi::placement;

std::string baechi::placement::parseSweepMemory(std::string_view text,
                                                SweepMemory &memory) {
  memory = {};
  if (text == "own")
    return "";
  if (text.ends_with('%')) {
    double share = 0;
    const char *end = text.data() + text.size() - 1;
    auto [rest, error] = std::from_chars(text.data(), end, share);
    if (error == std::errc() && rest == end && std::isfinite(share) &&
        share >= 0) {
      memory = {SweepMemory::Kind::Share, share};
      return "";
    }
  } else if (std::optional<int64_t> bytes = parseBytes(text);
             bytes && *bytes < int64_t(1) << 60) {
    memory = {SweepMemory::Kind::Bytes, static_cast<double>(*bytes)};
    return "";
  }
  return fmt::format("unknown memory '{}': use own (as the machine has it), a "
                     "size such as 8GiB, or a share of what one device alone "
                     "needs such as 50%",
                     text);
}

//===- Problem.cpp - The placement problem ----------------------*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Baechi/Placement/Model/Pool.h"

#include <limits>

using namespace baechi::placement;

int64_t Link::transferNs(int64_t bytes) const {
  return lends ? latencyNs : copyNs(bytes);
}

int64_t Link::copyNs(int64_t bytes) const {
  // In 128 bits: an input that `check` has not seen yet may hold anything.
  auto wide = static_cast<__int128>(bytes) * 1000;
  auto total = latencyNs + (wide + bytesPerUs - 1) / bytesPerUs;
  constexpr int64_t limit = std::numeric_limits<int64_t>::max();
  return total > limit ? limit : static_cast<int64_t>(total);
}

int32_t Machine::stage() const {
  for (size_t d = 0; d < devices.size(); ++d)
    if (isStage(static_cast<int32_t>(d)))
      return static_cast<int32_t>(d);
  return -1;
}

std::optional<int64_t> baechi::placement::timeOn(const Operator &op,
                                                 std::string_view kind) {
  std::optional<int64_t> any;
  for (const auto &[name, time] : op.timeNs) {
    if (name == kind)
      return time;
    if (name.empty() && (time == 0 || !isPoolKind(kind)))
      any = time;
  }
  return any;
}

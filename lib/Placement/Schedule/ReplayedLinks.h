//===- ReplayedLinks.h - What transfers occupy ------------------*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Links, sides of devices and network cards, by the link model of
/// docs/formats.md: a part of the replay, which shares nothing with the
/// scheduler.
///
//===----------------------------------------------------------------------===//
#ifndef BAECHI_LIB_PLACEMENT_SCHEDULE_REPLAYEDLINKS_H
#define BAECHI_LIB_PLACEMENT_SCHEDULE_REPLAYEDLINKS_H

#include "Baechi/Placement/Model/Problem.h"

#include <string>
#include <vector>

namespace baechi::placement {

/// What an operator or a transfer (a position in the replay's list) takes up.
struct Span {
  int64_t start;
  int64_t end;
  int32_t op = -1;
  int32_t transfer = -1;
};

class ReplayedLinks {
public:
  /// A link, a side or all of a device, or a network card; what is on it.
  struct Resource {
    std::string name;
    std::vector<Span> spans;
  };

  explicit ReplayedLinks(const Machine &machine);

  /// A transfer between these devices.
  void occupy(int32_t from, int32_t to, const Span &span);
  std::vector<Resource> byName() &&;

private:
  const Machine &machine;
  int32_t numDevices, numCards;
  bool oneSide; ///< a device or a card sends or receives, not both at a time
  size_t firstCard = 0;
  std::vector<Resource> resources;
};

} // namespace baechi::placement

#endif // BAECHI_LIB_PLACEMENT_SCHEDULE_REPLAYEDLINKS_H

//===- BusyLinks.h - Which links are in use ---------------------*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef BAECHI_LIB_PLACEMENT_SCHEDULE_BUSYLINKS_H
#define BAECHI_LIB_PLACEMENT_SCHEDULE_BUSYLINKS_H

#include "Baechi/Placement/Model/Problem.h"

#include <algorithm>

namespace baechi::placement {

/// The transfers that run, as far as they keep others from running. The link
/// model is an argument so that it can be a constant where it matters.
class BusyLinks {
public:
  explicit BusyLinks(int32_t devices)
      : devices(devices), out(devices, 0), in(devices, 0),
        pair(static_cast<size_t>(devices) * devices, 0) {}

  void clear() {
    for (auto *list : {&out, &in, &pair})
      std::fill(list->begin(), list->end(), 0);
  }

  /// Whether a transfer may begin.
  bool areFree(LinkModel model, int32_t from, int32_t to) const {
    switch (model) {
    case LinkModel::Unlimited:
      return true;
    case LinkModel::Parallel:
      return !pair[at(from, to)];
    case LinkModel::Duplex:
      return !out[from] && !in[to];
    case LinkModel::Sequential:
      return !out[from] && !out[to];
    }
    return true;
  }

  /// A transfer begins, or ends.
  void set(LinkModel model, int32_t from, int32_t to, bool busy) {
    switch (model) {
    case LinkModel::Unlimited:
      return;
    case LinkModel::Parallel:
      pair[at(from, to)] = busy;
      return;
    case LinkModel::Duplex:
      out[from] = in[to] = busy;
      return;
    case LinkModel::Sequential:
      out[from] = out[to] = busy;
      return;
    }
  }

private:
  size_t at(int32_t from, int32_t to) const {
    return static_cast<size_t>(from) * devices + to;
  }

  int32_t devices;
  /// Per device; where there is only one transfer at a time it is `out`.
  std::vector<uint8_t> out, in;
  std::vector<uint8_t> pair; ///< [from * devices + to]
};

} // namespace baechi::placement

#endif // BAECHI_LIB_PLACEMENT_SCHEDULE_BUSYLINKS_H

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
  explicit BusyLinks(const Machine &machine)
      : devices(static_cast<int32_t>(machine.devices.size())), out(devices, 0),
        in(devices, 0), pair(static_cast<size_t>(devices) * devices, 0) {
    if (!machine.nodes)
      return;
    nodes = &*machine.nodes;
    for (int32_t d = 0; d < devices; ++d)
      side.push_back(machine.sideOf(d));
    cardOut.assign(nodes->numCards, 0);
    cardIn.assign(nodes->numCards, 0);
  }

  void clear() {
    for (auto *list : {&out, &in, &pair, &cardOut, &cardIn})
      std::fill(list->begin(), list->end(), 0);
  }

  /// Whether a transfer may begin.
  bool areFree(LinkModel model, int32_t from, int32_t to) const {
    if (nodes && !cardsAreFree(model, from, to))
      return false;
    if (nodes && model != LinkModel::Parallel) {
      from = side[from];
      to = side[to];
    }
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
    if (nodes && model != LinkModel::Unlimited &&
        nodes->node[from] != nodes->node[to]) {
      bool isShared = model == LinkModel::Sequential;
      cardOut[nodes->card[from]] = busy;
      (isShared ? cardOut : cardIn)[nodes->card[to]] = busy;
    }
    if (nodes && model != LinkModel::Parallel) {
      from = side[from];
      to = side[to];
    }
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
  bool cardsAreFree(LinkModel model, int32_t from, int32_t to) const {
    if (model == LinkModel::Unlimited || nodes->node[from] == nodes->node[to])
      return true;
    const auto &into = model == LinkModel::Sequential ? cardOut : cardIn;
    return !cardOut[nodes->card[from]] && !into[nodes->card[to]];
  }

  int32_t devices;
  /// Per device; where there is only one transfer at a time it is `out`.
  std::vector<uint8_t> out, in;
  std::vector<uint8_t> pair;            ///< [from * devices + to]
  const Nodes *nodes = nullptr;         ///< of the machine, if it has any
  std::vector<int32_t> side;            ///< per device
  std::vector<uint8_t> cardOut, cardIn; ///< per network card, as `out`, `in`
};

} // namespace baechi::placement

#endif // BAECHI_LIB_PLACEMENT_SCHEDULE_BUSYLINKS_H

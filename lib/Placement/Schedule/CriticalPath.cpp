//===- CriticalPath.cpp - What a makespan hangs on --------------*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Schedule/CriticalPath.h"

#include <algorithm>

using namespace baechi::placement;

namespace {

class Walk {
public:
  Walk(const Model &model, const Assignment &device, const Schedule &schedule);
  CriticalPath run();

private:
  int64_t finish(int32_t node) const {
    return schedule.start[node] + model.timeOf(node, device[node]);
  }
  bool shareLink(const ScheduledTransfer &a, const ScheduledTransfer &b) const;
  const ScheduledTransfer *arrivalOf(int32_t tensor, int32_t to) const;
  void beforeNode(int32_t node);
  void beforeTransfer(const ScheduledTransfer &transfer);

  const Model &model;
  const Assignment &device;
  const Schedule &schedule;
  std::vector<int32_t> previous; ///< the node before, on the same device
  std::vector<const ScheduledTransfer *> byTarget, byEnd;
  int32_t atNode = -1;
  const ScheduledTransfer *atTransfer = nullptr;
};

Walk::Walk(const Model &model, const Assignment &device,
           const Schedule &schedule)
    : model(model), device(device), schedule(schedule),
      previous(model.numNodes, -1) {
  std::vector<int32_t> order = model.order;
  std::sort(order.begin(), order.end(), [&](int32_t a, int32_t b) {
    return std::tuple(schedule.start[a], finish(a), a) <
           std::tuple(schedule.start[b], finish(b), b);
  });
  std::vector<int32_t> last(model.numDevices, -1);
  for (int32_t i : order) {
    previous[i] = last[device[i]];
    last[device[i]] = i;
  }
  for (const ScheduledTransfer &transfer : schedule.transfers)
    byTarget.push_back(&transfer);
  byEnd = byTarget;
  std::sort(byTarget.begin(), byTarget.end(), [](auto *a, auto *b) {
    return std::tie(a->tensor, a->to) < std::tie(b->tensor, b->to);
  });
  std::sort(byEnd.begin(), byEnd.end(), [](auto *a, auto *b) {
    return std::tie(a->end, a->tensor, a->to) <
           std::tie(b->end, b->tensor, b->to);
  });
}

const ScheduledTransfer *Walk::arrivalOf(int32_t tensor, int32_t to) const {
  auto it =
      std::lower_bound(byTarget.begin(), byTarget.end(), std::tuple(tensor, to),
                       [](auto *a, const auto &key) {
                         return std::tuple(a->tensor, a->to) < key;
                       });
  bool found =
      it != byTarget.end() && (*it)->tensor == tensor && (*it)->to == to;
  return found ? *it : nullptr;
}

bool Walk::shareLink(const ScheduledTransfer &a,
                     const ScheduledTransfer &b) const {
  const Machine &machine = *model.machine;
  if (machine.usesCards(a.from, a.to) && machine.usesCards(b.from, b.to)) {
    const auto &card = machine.nodes->card;
    if (card[a.from] == card[b.from] || card[a.to] == card[b.to] ||
        (machine.linkModel == LinkModel::Sequential &&
         (card[a.from] == card[b.to] || card[a.to] == card[b.from])))
      return true;
  }
  int32_t from = a.from, other = b.from;
  switch (machine.linkModel) {
  case LinkModel::Unlimited:
    return false;
  case LinkModel::Parallel:
    return from == other && a.to == b.to;
  case LinkModel::Duplex:
    return from == other || a.to == b.to;
  case LinkModel::Sequential:
    return from == other || from == b.to || a.to == other || a.to == b.to;
  }
  return false;
}

void Walk::beforeNode(int32_t node) {
  int64_t start = schedule.start[node];
  atNode = -1;
  for (int32_t t : model.operands[node]) {
    int32_t source = model.producer[t];
    if (device[source] == device[node]) {
      if (finish(source) == start)
        atNode = source;
    } else if (auto *transfer = arrivalOf(t, device[node]);
               transfer && transfer->end == start) {
      atTransfer = transfer;
      return;
    }
  }
  for (int32_t source : model.controlSources[node]) {
    int64_t wait = device[source] == device[node]
                       ? 0
                       : model.latencyNs(device[source], device[node]);
    if (finish(source) + wait == start)
      atNode = source;
  }
  if (atNode < 0 && previous[node] >= 0 && finish(previous[node]) == start)
    atNode = previous[node];
}

void Walk::beforeTransfer(const ScheduledTransfer &transfer) {
  atTransfer = nullptr;
  int32_t source = model.producer[transfer.tensor];
  if (transfer.from != device[source]) {
    // Passed on: what brought it there.
    if (auto *before = arrivalOf(transfer.tensor, transfer.from);
        before && before->end == transfer.start) {
      atTransfer = before;
      return;
    }
  } else if (finish(source) == transfer.start) {
    atNode = source;
    return;
  }
  auto it = std::lower_bound(byEnd.begin(), byEnd.end(), transfer.start,
                             [](auto *a, int64_t at) { return a->end < at; });
  for (; it != byEnd.end() && (*it)->end == transfer.start; ++it)
    if (*it != &transfer && (*it)->start < transfer.start &&
        shareLink(**it, transfer)) {
      atTransfer = *it;
      return;
    }
}

CriticalPath Walk::run() {
  CriticalPath path;
  for (int32_t i = 0; i < model.numNodes; ++i)
    if (atNode < 0 || finish(i) > finish(atNode))
      atNode = i;
  // Steps of no duration could lead round in a circle.
  size_t limit = schedule.start.size() + schedule.transfers.size();
  while ((atNode >= 0 || atTransfer) &&
         path.nodes.size() + path.transfers.size() < limit) {
    if (atTransfer) {
      path.transfers.push_back(*atTransfer);
      beforeTransfer(*atTransfer);
    } else {
      path.nodes.push_back(atNode);
      beforeNode(atNode);
    }
  }
  return path;
}

} // namespace

CriticalPath baechi::placement::criticalPath(const Model &model,
                                             const Assignment &device,
                                             const Schedule &schedule) {
  return Walk(model, device, schedule).run();
}

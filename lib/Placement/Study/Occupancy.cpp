//===- Occupancy.cpp - When devices and links are idle ----------*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Study/Occupancy.h"

#include <algorithm>
#include <tuple>

using namespace baechi::placement;
using namespace baechi::placement::study;

void Occupancy::sort() {
  std::sort(spans.begin(), spans.end(), [](const Span &a, const Span &b) {
    return std::tie(a.start, a.end, a.by) < std::tie(b.start, b.end, b.by);
  });
}

Occupancy::Gap Occupancy::firstGap(int64_t from, int64_t length,
                                   int32_t ignored) const {
  Gap gap{from};
  // What takes no time fits anywhere.
  if (length == 0)
    return gap;
  auto it =
      std::partition_point(spans.begin(), spans.end(),
                           [&](const Span &span) { return span.end <= from; });
  for (; it != spans.end() && it->start - gap.start < length; ++it)
    if (it->by != ignored && it->end > gap.start)
      gap = {it->end, it->by};
  return gap;
}

LinkOccupancy::LinkOccupancy(const Machine &machine, const Placement &placement)
    : machine(machine) {
  size_t devices = machine.devices.size();
  firstCard = std::max(devices * devices, 2 * devices);
  rows.resize(firstCard + (machine.nodes ? 2 * machine.nodes->numCards : 0));
  for (size_t k = 0; k < placement.transfers.size(); ++k) {
    const Transfer &t = placement.transfers[k];
    for (size_t row : rowsOf(t.from, t.to))
      rows[row].add({t.startNs, t.endNs, static_cast<int32_t>(k)});
  }
  for (Occupancy &row : rows)
    row.sort();
}

std::vector<size_t> LinkOccupancy::rowsOf(int32_t from, int32_t to) const {
  size_t devices = machine.devices.size();
  auto a = static_cast<size_t>(from), b = static_cast<size_t>(to);
  std::vector<size_t> found;
  switch (machine.linkModel) {
  case LinkModel::Unlimited:
    break;
  case LinkModel::Parallel:
    found = {a * devices + b};
    break;
  case LinkModel::Duplex:
    found = {a, devices + b};
    break;
  case LinkModel::Sequential:
    found = {a, b};
    break;
  }
  if (machine.usesCards(from, to)) {
    const Nodes &nodes = *machine.nodes;
    bool isShared = machine.linkModel == LinkModel::Sequential;
    found.push_back(firstCard + nodes.card[from]);
    found.push_back(firstCard + nodes.card[to] +
                    (isShared ? 0 : nodes.numCards));
  }
  return found;
}

/// Whether two transfers to the device \p to, from these, may not overlap.
bool LinkOccupancy::exclude(int32_t to, int32_t fromA, int32_t fromB) const {
  if (machine.usesCards(fromA, to) && machine.usesCards(fromB, to))
    return true; // They come in through one card.
  switch (machine.linkModel) {
  case LinkModel::Unlimited:
    return false;
  case LinkModel::Parallel:
    return fromA == fromB;
  case LinkModel::Duplex:
  case LinkModel::Sequential:
    return true;
  }
  return true;
}

int64_t
LinkOccupancy::firstGap(int32_t from, int32_t to, int64_t ready, int64_t length,
                        const std::vector<Occupancy::Span> &booked) const {
  int64_t start = ready, before = -1;
  while (start != before && length > 0) {
    before = start;
    for (size_t row : rowsOf(from, to))
      start = rows[row].firstGap(start, length).start;
    for (const Occupancy::Span &span : booked)
      if (exclude(to, from, span.by) && span.start < start + length &&
          start < span.end)
        start = span.end;
  }
  return start;
}

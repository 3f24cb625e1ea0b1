//===- MachineVariant.cpp - Machines made from one --------------*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Study/MachineVariant.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>

using namespace baechi::placement;
using namespace baechi::placement::study;

namespace {

Link scaled(Link link, double speed) {
  if (speed == 1)
    return link;
  // Beyond this a transfer takes its latency anyway.
  constexpr double limit = 1e15;
  double scaled = std::round(static_cast<double>(link.bytesPerUs) * speed);
  link.bytesPerUs = static_cast<int64_t>(std::clamp(scaled, 1.0, limit));
  return link;
}

bool same(const std::optional<Link> &a, const std::optional<Link> &b) {
  if (!a || !b)
    return a.has_value() == b.has_value();
  return *a == *b;
}

} // namespace

MachineVariants::MachineVariants(const Problem &problem)
    : base(problem.machine) {
  bool needsOthers = std::any_of(
      problem.graph.ops.begin(), problem.graph.ops.end(),
      [&](const Operator &op) {
        bool pinnedElsewhere =
            op.pin && std::any_of(base.devices.begin(), base.devices.end(),
                                  [&](const Device &device) {
                                    return device.name == *op.pin &&
                                           device.kind != pattern().kind;
                                  });
        return pinnedElsewhere || !timeOn(op, pattern().kind);
      });
  bool sameMemory = true;
  int32_t leftOut = 0;
  for (size_t d = 0; d < base.devices.size(); ++d) {
    const Device &device = base.devices[d];
    if (device.kind == pattern().kind) {
      alike.push_back(static_cast<int32_t>(d));
      sameMemory &= device.memory == pattern().memory;
    } else if (needsOthers) {
      others.push_back(static_cast<int32_t>(d));
    } else {
      ++leftOut;
    }
  }
  if (!sameMemory)
    remarks.push_back(fmt::format("the memories of the devices of kind '{}' "
                                  "differ: all have that of {} here",
                                  pattern().kind, pattern().name));
  if (leftOut > 0)
    remarks.push_back(fmt::format("{} of other kinds than {} ('{}') {} left "
                                  "out",
                                  leftOut == 1 ? "the device" : "the devices",
                                  pattern().name, pattern().kind,
                                  leftOut == 1 ? "is" : "are"));
  if (!others.empty())
    remarks.push_back(fmt::format("the devices of other kinds than {} ('{}') "
                                  "stay as they are: some operators cannot do "
                                  "without them",
                                  pattern().name, pattern().kind));
  findLink();
}

void MachineVariants::findLink() {
  bool alikeLinks = true;
  auto devices = static_cast<int32_t>(base.devices.size());
  if (alike.size() > 1) {
    between = base.link(alike[0], alike[1]);
    for (int32_t a : alike)
      for (int32_t b : alike)
        alikeLinks &= a == b || same(base.link(a, b), between);
  } else {
    for (int32_t d = 1; d < devices && !between; ++d)
      between = base.link(0, d);
  }
  for (int32_t other : others)
    for (int32_t a : alike)
      alikeLinks &= same(base.link(a, other), base.link(alike[0], other)) &&
                    same(base.link(other, a), base.link(other, alike[0]));
  if (!alikeLinks)
    remarks.push_back(fmt::format("the links of the devices of kind '{}' "
                                  "differ: all are as those of {} here",
                                  pattern().kind, pattern().name));
}

Machine MachineVariants::make(int32_t devices, int64_t memory,
                              double linkSpeed) const {
  Machine machine;
  machine.linkModel = base.linkModel;
  std::set<std::string> names;
  for (const Device &device : base.devices)
    names.insert(device.name);
  // gpu0 ... gpu3 go on with gpu4.
  std::string stem = pattern().name;
  while (!stem.empty() && stem.back() >= '0' && stem.back() <= '9')
    stem.pop_back();
  size_t next = alike.size();
  for (int32_t k = 0; k < devices; ++k) {
    Device device = pattern();
    device.memory = memory;
    if (static_cast<size_t>(k) < alike.size())
      device.name = base.devices[alike[k]].name;
    else
      do
        device.name = fmt::format("{}{}", stem, next++);
      while (!names.insert(device.name).second);
    machine.devices.push_back(std::move(device));
  }
  for (int32_t other : others)
    machine.devices.push_back(base.devices[other]);
  size_t n = machine.devices.size();
  machine.links.resize(n * n);
  // The device of the given machine whose links device d has.
  auto model = [&](size_t d) {
    return d < static_cast<size_t>(devices) ? 0 : others[d - devices];
  };
  for (size_t from = 0; from < n; ++from)
    for (size_t to = 0; to < n; ++to) {
      if (from == to)
        continue;
      int32_t a = model(from), b = model(to);
      const std::optional<Link> &link = a == b ? between : base.link(a, b);
      if (link)
        machine.links[from * n + to] = scaled(*link, linkSpeed);
    }
  return machine;
}

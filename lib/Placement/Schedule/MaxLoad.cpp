//===- MaxLoad.cpp - Loads of devices and links -----------------*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Schedule/Schedule.h"

#include <algorithm>

using namespace baechi::placement;

namespace {

/// Calls \p visit(tensor, from, to) for every transfer that \p device asks
/// for, and \p visit(tensor, from, from) before those of a tensor. False when
/// two devices that must talk cannot.
/// Calls \p visit with every transfer, and with a tensor's home twice before
/// the first one of it. False when two devices that must talk cannot.
template <typename Visit>
bool forEachTransfer(const Model &model, const Assignment &device,
                     Visit visit) {
  std::vector<int32_t> sentFor(model.numDevices, -1);
  for (int32_t t = 0; t < model.numTensors; ++t) {
    int32_t home = device[model.producer[t]];
    bool sent = false;
    for (int32_t user : model.users[t]) {
      if (!model.reaches(home, device[user]))
        return false;
      for (int32_t d = device[user], from; d != home && sentFor[d] != t;
           d = from) {
        sentFor[d] = t;
        from = model.hopBefore(home, d);
        if (!sent)
          visit(t, home, home);
        sent = true;
        visit(t, from, d);
      }
    }
  }
  for (int32_t i = 0; i < model.numNodes && model.lacksLinks; ++i)
    for (int32_t user : model.controlUsers[i])
      if (device[i] != device[user] && !model.linked(device[i], device[user]))
        return false;
  return true;
}

/// Computing, sending and fetching together, of every device but the stages.
int64_t stagedLoad(const Model &model, const Assignment &device,
                   std::vector<int64_t> load) {
  const Machine &machine = *model.machine;
  int32_t stage = machine.stage();
  std::vector<uint8_t> isStage(model.numDevices);
  for (int32_t d = 0; d < model.numDevices; ++d)
    isStage[d] = machine.isStage(d);
  if (!forEachTransfer(model, device, [&](int32_t t, int32_t from, int32_t to) {
        if (isStage[to])
          return;
        load[to] += from == to ? model.transferNs(t, from, stage)
                               : model.transferNs(t, stage, to);
      }))
    return never;
  return *std::max_element(load.begin(), load.end());
}

} // namespace

int64_t baechi::placement::maxLoad(const Model &model,
                                   const Assignment &device) {
  int32_t devices = model.numDevices;
  std::vector<int64_t> compute(devices, 0), out(devices, 0), in(devices, 0);
  std::vector<int64_t> pair(static_cast<size_t>(devices) * devices, 0);
  const Machine &machine = *model.machine;
  int32_t numCards = machine.nodes ? machine.nodes->numCards : 0;
  bool oneSide = machine.linkModel == LinkModel::Sequential;
  std::vector<int64_t> card(static_cast<size_t>(2) * numCards + 1, 0);
  for (int32_t i = 0; i < model.numNodes; ++i)
    compute[device[i]] += model.timeOf(i, device[i]);
  if (model.machine->stagedThrough)
    return stagedLoad(model, device, std::move(compute));
  if (!forEachTransfer(model, device, [&](int32_t t, int32_t from, int32_t to) {
        if (from == to)
          return;
        int64_t ns = model.transferNs(t, from, to);
        out[from] += ns;
        in[to] += ns;
        pair[from * devices + to] += ns;
        if (machine.usesCards(from, to)) {
          card[machine.nodes->card[from]] += ns;
          card[machine.nodes->card[to] + (oneSide ? 0 : numCards)] += ns;
        }
      }))
    return never;
  int64_t load = std::max(*std::max_element(compute.begin(), compute.end()),
                          *std::max_element(card.begin(), card.end()));
  switch (model.machine->linkModel) {
  case LinkModel::Unlimited:
    break;
  case LinkModel::Parallel:
    load = std::max(load, *std::max_element(pair.begin(), pair.end()));
    break;
  case LinkModel::Duplex:
    load = std::max({load, *std::max_element(out.begin(), out.end()),
                     *std::max_element(in.begin(), in.end())});
    break;
  case LinkModel::Sequential:
    for (int32_t d = 0; d < devices; ++d)
      load = std::max(load, out[d] + in[d]);
    break;
  }
  return load;
}

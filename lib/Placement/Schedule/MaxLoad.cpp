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

/// Of a machine that does not stage transfers.
class Loads {
public:
  Loads(const Model &model, const Assignment &device)
      : model(model), machine(*model.machine), devices(model.numDevices),
        numCards(machine.nodes ? machine.nodes->numCards : 0), compute(devices),
        out(devices), in(devices), pair(static_cast<size_t>(devices) * devices),
        card(static_cast<size_t>(2) * numCards + 1) {
    for (int32_t i = 0; i < model.numNodes; ++i)
      compute[device[i]] += model.timeOf(i, device[i]);
  }

  void addTransfer(int32_t tensor, int32_t from, int32_t to) {
    bool oneSide = machine.linkModel == LinkModel::Sequential;
    int64_t ns = model.transferNs(tensor, from, to);
    out[from] += ns;
    in[to] += ns;
    pair[from * devices + to] += ns;
    if (machine.usesCards(from, to)) {
      card[machine.nodes->card[from]] += ns;
      card[machine.nodes->card[to] + (oneSide ? 0 : numCards)] += ns;
    }
  }

  int64_t largest() const {
    int64_t load = std::max(largestOf(compute), largestOf(card));
    switch (machine.linkModel) {
    case LinkModel::Unlimited:
      break;
    case LinkModel::Parallel:
      load = std::max(load, largestOf(pair));
      break;
    case LinkModel::Duplex:
      load = std::max({load, largestOf(out), largestOf(in)});
      break;
    case LinkModel::Sequential:
      for (int32_t d = 0; d < devices; ++d)
        load = std::max(load, out[d] + in[d]);
      break;
    }
    return load;
  }

  const std::vector<int64_t> &computing() const { return compute; }

private:
  static int64_t largestOf(const std::vector<int64_t> &loads) {
    return *std::max_element(loads.begin(), loads.end());
  }

  const Model &model;
  const Machine &machine;
  const int32_t devices, numCards;
  std::vector<int64_t> compute, out, in, pair, card;
};

} // namespace

int64_t baechi::placement::maxLoad(const Model &model,
                                   const Assignment &device) {
  Loads loads(model, device);
  if (model.machine->stagedThrough)
    return stagedLoad(model, device, loads.computing());
  if (!forEachTransfer(model, device, [&](int32_t t, int32_t from, int32_t to) {
        if (from != to)
          loads.addTransfer(t, from, to);
      }))
    return never;
  return loads.largest();
}

int64_t baechi::placement::maxLoad(const Model &model,
                                   const Placement &placement) {
  if (model.machine->stagedThrough)
    return maxLoad(model, placement.device);
  Loads loads(model, placement.device);
  for (const Transfer &transfer : placement.transfers)
    loads.addTransfer(model.tensorsOf(transfer.op).first + transfer.output,
                      transfer.from, transfer.to);
  return loads.largest();
}

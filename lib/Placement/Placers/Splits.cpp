//===- Splits.cpp - Contiguous splits by dynamic programming ----*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Placers/Splits.h"
#include "Model/DeviceClasses.h"
#include "Model/LoadGraph.h"
#include "Model/Random.h"
#include "Schedule/Schedule.h"

#include <algorithm>
#include <cmath>
#include <numeric>

using namespace baechi::placement;
using namespace baechi::placement::placers;

namespace {

/// An assignment and its value.
struct Split {
  int64_t value = never;
  std::vector<int32_t> device; ///< per block
};

class Splitter {
public:
  Splitter(const Model &model, const SplitOptions &options);
  /// The best splits of the blocks that \p blockOf puts the units in, one for
  /// every number of devices that is asked for.
  std::vector<Split> split(std::span<const int32_t> blockOf, int32_t count);
  int32_t maxBlocks() const { return blockLimit; }

private:
  struct Step {
    int32_t state; ///< the one before
    int32_t block; ///< where the piece begins
    int32_t by;    ///< class of its device
  };
  struct Transition {
    int32_t to, by;
  };

  void findStates();
  int64_t pieceCost(int32_t by) const;
  void beginPiece();
  void extendPiece(const LoadGraph &graph, int32_t block);
  Split follow(int32_t state, int32_t count) const;

  const Model &model;
  const SplitOptions &options;
  const Machine &machine;
  std::vector<DeviceClass> classes;
  /// States are numbers of used devices of every class.
  std::vector<std::vector<Transition>> transitions;
  std::vector<int32_t> used; ///< devices in all, per state
  int32_t blockLimit = 2;

  // The table of one order.
  std::vector<int64_t> best; ///< [state * (count + 1) + blocks placed]
  std::vector<Step> steps;

  // The piece that grows.
  std::vector<int64_t> netNs, netCopy;
  std::vector<int32_t> inside;   ///< readers of every net in the piece
  std::vector<uint8_t> sentFrom; ///< its producer is
  std::vector<int32_t> touched;  ///< nets to reset
  std::vector<int64_t> compute;  ///< per class; `never`: not allowed
  int64_t send = 0, fetch = 0, held = 0;
};

Splitter::Splitter(const Model &model, const SplitOptions &options)
    : model(model), options(options), machine(*model.machine),
      classes(deviceClasses(model)) {
  findStates();
  size_t moves = 0;
  for (const auto &from : transitions)
    moves += from.size();
  // About 20 ms an order, and never fewer blocks than it takes to use every
  // device well.
  constexpr double steps = 1.5e7;
  double limit = std::sqrt(2 * steps / static_cast<double>(moves + 8));
  blockLimit = std::max<int32_t>(static_cast<int32_t>(std::min(limit, 1200.0)),
                                 2 * model.numDevices);
}

/// Every combination of numbers of devices where these are few; otherwise the
/// devices are used in one order, the fastest first.
void Splitter::findStates() {
  constexpr size_t manyStates = 300;
  size_t count = 1;
  for (const DeviceClass &some : classes)
    count = std::min(count * (some.devices.size() + 1), manyStates + 1);
  if (count <= manyStates) {
    transitions.resize(count);
    used.assign(count, 0);
    for (size_t s = 0; s < count; ++s) {
      size_t stride = 1;
      for (size_t k = 0; k < classes.size(); ++k) {
        size_t size = classes[k].devices.size() + 1;
        size_t taken = s / stride % size;
        used[s] += static_cast<int32_t>(taken);
        if (taken + 1 < size)
          transitions[s].push_back(
              {static_cast<int32_t>(s + stride), static_cast<int32_t>(k)});
        stride *= size;
      }
    }
    return;
  }
  std::vector<int64_t> total(classes.size(), 0);
  for (size_t k = 0; k < classes.size(); ++k)
    for (int32_t i = 0; i < model.numNodes; ++i)
      total[k] += std::max<int64_t>(model.timeOf(i, classes[k].front()),
                                    model.minTime(i));
  std::vector<int32_t> order(classes.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(),
                   [&](int32_t a, int32_t b) { return total[a] < total[b]; });
  for (int32_t k : order)
    for (size_t n = 0; n < classes[k].devices.size(); ++n)
      transitions.push_back(
          {{static_cast<int32_t>(transitions.size()) + 1, k}});
  transitions.emplace_back();
  used.resize(transitions.size());
  std::iota(used.begin(), used.end(), 0);
}

void Splitter::beginPiece() {
  for (int32_t net : touched) {
    inside[net] = 0;
    sentFrom[net] = 0;
  }
  touched.clear();
  compute.assign(classes.size(), 0);
  send = fetch = held = 0;
}

void Splitter::extendPiece(const LoadGraph &graph, int32_t block) {
  for (size_t k = 0; k < classes.size(); ++k) {
    int32_t d = classes[k].front();
    if (!graph.mayUse(block, d))
      compute[k] = never;
    else if (compute[k] != never)
      compute[k] += graph.timeOf(block, d);
  }
  auto share = [&](int64_t bytes) {
    return static_cast<int64_t>(static_cast<double>(bytes) *
                                options.passingShare);
  };
  held += graph.resident[block] + share(graph.passing[block]);
  auto touch = [&](int32_t net) {
    if (!sentFrom[net] && inside[net] == 0)
      touched.push_back(net);
  };
  for (int32_t net : graph.consumes[block]) {
    touch(net);
    ++inside[net];
    if (sentFrom[net]) {
      if (inside[net] == static_cast<int32_t>(graph.users[net].size()))
        send -= netNs[net];
    } else if (inside[net] == 1) {
      fetch += netNs[net];
      held += netCopy[net];
    }
  }
  for (int32_t net : graph.produces[block]) {
    touch(net);
    sentFrom[net] = 1;
    if (inside[net] > 0) {
      fetch -= netNs[net];
      held -= netCopy[net];
    }
    if (inside[net] < static_cast<int32_t>(graph.users[net].size()))
      send += netNs[net];
  }
}

/// Of the piece on a device of a class; `never` when it may not be there.
int64_t Splitter::pieceCost(int32_t by) const {
  if (compute[by] == never || held > classes[by].memory)
    return never;
  bool staged = machine.stagedThrough.has_value();
  int64_t transfers = classes[by].isStage ? 0 : send + fetch;
  if (options.goal == SplitGoal::Total || staged)
    return compute[by] + transfers;
  switch (machine.linkModel) {
  case LinkModel::Unlimited:
    return compute[by];
  case LinkModel::Parallel:
  case LinkModel::Duplex:
    return std::max({compute[by], send, fetch});
  case LinkModel::Sequential:
    return std::max(compute[by], send + fetch);
  }
  return compute[by];
}

std::vector<Split> Splitter::split(std::span<const int32_t> blockOf,
                                   int32_t count) {
  LoadGraph graph(model, blockOf, count);
  int32_t stage = machine.stage();
  int32_t other = stage == 0 && model.numDevices > 1 ? 1 : 0;
  netNs.assign(graph.numNets(), 0);
  netCopy.clear();
  for (int32_t net = 0; net < graph.numNets(); ++net) {
    netCopy.push_back(static_cast<int64_t>(
        static_cast<double>(graph.copy[net]) * options.passingShare));
    if (stage >= 0 && other != stage) {
      netNs[net] = graph.transferNs(net, other, stage);
    } else if (graph.classes > 0) {
      for (int32_t c = 0; c < graph.classes; ++c)
        netNs[net] +=
            graph.transfer[static_cast<size_t>(net) * graph.classes + c] /
            graph.classes;
    }
  }
  inside.assign(graph.numNets(), 0);
  sentFrom.assign(graph.numNets(), 0);
  touched.clear();
  auto states = static_cast<int32_t>(transitions.size());
  auto at = [&](int32_t state, int32_t block) {
    return static_cast<size_t>(state) * (count + 1) + block;
  };
  best.assign(at(states, 0), never);
  steps.assign(best.size(), {-1, -1, -1});
  best[at(0, 0)] = 0;
  bool sum = options.goal == SplitGoal::Total;
  std::vector<int64_t> cost(classes.size());
  for (int32_t from = 0; from < count; ++from) {
    beginPiece();
    for (int32_t end = from + 1; end <= count; ++end) {
      extendPiece(graph, end - 1);
      int64_t least = never;
      for (size_t k = 0; k < classes.size(); ++k) {
        cost[k] = pieceCost(static_cast<int32_t>(k));
        least = std::min(least, cost[k]);
      }
      if (least == never)
        continue;
      for (int32_t s = 0; s < states; ++s) {
        int64_t before = best[at(s, from)];
        if (before == never)
          continue;
        for (auto [next, by] : transitions[s]) {
          if (cost[by] == never)
            continue;
          int64_t value = sum ? before + cost[by] : std::max(before, cost[by]);
          if (value < best[at(next, end)]) {
            best[at(next, end)] = value;
            steps[at(next, end)] = {s, from, by};
          }
        }
      }
    }
  }
  // The best state for every number of devices.
  std::vector<int32_t> chosen(model.numDevices + 1, -1);
  for (int32_t s = 0; s < states; ++s) {
    int64_t value = best[at(s, count)];
    int32_t &choice = chosen[used[s]];
    if (value != never && (choice < 0 || value < best[at(choice, count)]))
      choice = s;
  }
  std::vector<Split> splits;
  for (int32_t n = model.numDevices; n > 0; --n)
    if (int32_t s = chosen[n];
        s >= 0 && (options.fewerDevices || splits.empty() ||
                   best[at(s, count)] < splits.front().value)) {
      if (!options.fewerDevices)
        splits.clear();
      splits.push_back(follow(s, count));
    }
  return splits;
}

Split Splitter::follow(int32_t state, int32_t count) const {
  auto at = [&](int32_t s, int32_t block) {
    return static_cast<size_t>(s) * (count + 1) + block;
  };
  Split split;
  split.value = best[at(state, count)];
  split.device.resize(count);
  std::vector<size_t> taken(classes.size(), 0);
  for (int32_t end = count; end > 0;) {
    const Step &step = steps[at(state, end)];
    int32_t d = classes[step.by].devices[taken[step.by]++];
    std::fill(split.device.begin() + step.block, split.device.begin() + end, d);
    state = step.state;
    end = step.block;
  }
  return split;
}

/// Units in the order of the first of their nodes.
std::vector<Unit> unitsInOrder(const Model &model,
                               std::span<const int32_t> nodes) {
  std::vector<uint8_t> seen(model.numUnits, 0);
  std::vector<Unit> order;
  for (int32_t i : nodes)
    if (Unit u = model.unit[i]; !seen[u]) {
      seen[u] = 1;
      order.push_back(u);
    }
  return order;
}

/// A depth-first topological order that takes what is ready at random.
std::vector<int32_t> randomOrder(const Model &model, Random &random) {
  std::vector<int32_t> waiting(model.numNodes, 0), stack, order, ready;
  auto push = [&] {
    for (size_t k = ready.size(); k > 1; --k)
      std::swap(ready[k - 1], ready[random.below(static_cast<int64_t>(k))]);
    stack.insert(stack.end(), ready.begin(), ready.end());
    ready.clear();
  };
  for (int32_t i = 0; i < model.numNodes; ++i)
    model.forEachUser(i, [&](int32_t user) { ++waiting[user]; });
  for (int32_t i = 0; i < model.numNodes; ++i)
    if (waiting[i] == 0)
      ready.push_back(i);
  push();
  while (!stack.empty()) {
    int32_t i = stack.back();
    stack.pop_back();
    order.push_back(i);
    model.forEachUser(i, [&](int32_t user) {
      if (--waiting[user] == 0)
        ready.push_back(user);
    });
    push();
  }
  return order;
}

/// Nodes by their earliest start, or by their latest, on unlimited devices.
std::vector<int32_t> orderByTime(const Model &model, bool latest) {
  std::vector<int64_t> key(model.numNodes, 0);
  if (latest) {
    for (int32_t k = model.numNodes; k-- > 0;) {
      int32_t i = model.order[k];
      int64_t after = 0;
      model.forEachUser(
          i, [&](int32_t user) { after = std::max(after, -key[user]); });
      key[i] = -(after + model.meanTime(i));
    }
  } else {
    for (int32_t i : model.order)
      model.forEachUser(i, [&](int32_t user) {
        key[user] = std::max(key[user], key[i] + model.meanTime(i));
      });
  }
  std::vector<int32_t> order = model.order;
  std::stable_sort(order.begin(), order.end(),
                   [&](int32_t a, int32_t b) { return key[a] < key[b]; });
  return order;
}

/// Consecutive units in at most \p limit blocks of about the same work.
std::vector<int32_t> blocksOf(const Model &model, std::span<const Unit> order,
                              int32_t limit, int32_t &count) {
  std::vector<int32_t> blockOf(model.numUnits);
  count = 0;
  if (model.numUnits <= limit) {
    for (Unit u : order)
      blockOf[u] = count++;
    return blockOf;
  }
  std::vector<double> weight(model.numUnits, 0);
  double total = 0;
  for (int32_t i = 0; i < model.numNodes; ++i)
    total += static_cast<double>(model.meanTime(i));
  for (int32_t i = 0; i < model.numNodes; ++i)
    weight[model.unit[i]] += static_cast<double>(model.meanTime(i));
  // Half by work and half by number: neither may fill a block.
  double each = (total + 1) / model.numUnits;
  double size = 2 * (total + each * model.numUnits) / limit, sum = 0;
  for (Unit u : order) {
    sum += weight[u] + each;
    if (sum > size && sum > weight[u] + each) {
      sum = weight[u] + each;
      ++count;
    }
    blockOf[u] = count;
  }
  ++count;
  return blockOf;
}

} // namespace

std::vector<Assignment>
baechi::placement::placers::contiguousSplits(const Model &model,
                                             const SplitOptions &options) {
  Splitter splitter(model, options);
  Random random(options.seed);
  std::vector<std::pair<int64_t, Assignment>> found;
  for (int32_t k = 0; k < options.orders; ++k) {
    std::vector<int32_t> nodes = k == 0   ? model.order
                                 : k == 1 ? orderByTime(model, false)
                                 : k == 2 ? orderByTime(model, true)
                                          : randomOrder(model, random);
    int32_t count;
    std::vector<int32_t> blockOf = blocksOf(model, unitsInOrder(model, nodes),
                                            splitter.maxBlocks(), count);
    for (const Split &split : splitter.split(blockOf, count)) {
      Assignment device(model.numNodes);
      for (int32_t i = 0; i < model.numNodes; ++i)
        device[i] = split.device[blockOf[model.unit[i]]];
      found.emplace_back(split.value, std::move(device));
    }
  }
  std::stable_sort(
      found.begin(), found.end(),
      [](const auto &a, const auto &b) { return a.first < b.first; });
  std::vector<Assignment> splits;
  for (auto &[value, device] : found)
    if (std::find(splits.begin(), splits.end(), device) == splits.end())
      splits.push_back(std::move(device));
  return splits;
}

//===- LoadBound.cpp - Certificates of the largest load ---------*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// A load T is refuted when no placement has it: then the largest load is more
/// than T. What is looked at:
///  - Tensors whose transfer alone takes longer than T are not cut: their ends
///    are one cluster.
///  - A cluster's device has the load of some set of clusters around it: its
///    computing and its transfers. The least of these is a minimum cut.
///  - With that cut priced by mu >= 1, computing and transfers of such a set S
///    together at most T means that compute(S) <= mu T - min over S of
///    (mu comm(S) + (mu - 1) compute(S)): what a device can compute at most
///    when it has the cluster. Every cluster then takes its share of a device,
///    and all shares must go into the devices there are. That is a linear
///    program over kinds of devices; any prices of theirs bound it from below.
///
//===----------------------------------------------------------------------===//

#include "Bounds/LoadBound.h"
#include "Bounds/CutFlow.h"
#include "Bounds/Shares.h"
#include "Grouping/Coarsen.h"
#include "Model/DeviceClasses.h"
#include "Model/LoadGraph.h"
#include "Schedule/Schedule.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

using namespace baechi::placement;
using namespace baechi::placement::bounds;

namespace {

class LoadBound {
public:
  explicit LoadBound(const Model &model);
  /// At least \p known.
  Bound run(Bound known);

private:
  /// What is known of the sets of clusters that one is in.
  struct Cut {
    int32_t cluster;
    double price; ///< mu; 0: `least` is of the load itself
    double least; ///< of mu comm(S) + (mu - 1) compute(S)
  };

  int64_t cutNs(int32_t net) const;
  void contract(int64_t load);
  void findCuts();
  template <typename ShareOf> bool exceeds(int64_t load, ShareOf shareOf) const;
  bool refutes(int64_t load);

  const Model &model;
  LoadGraph graph;
  std::vector<DeviceClass> kinds;
  bool staged;
  int32_t stages = 0;
  /// What of a device's transfers is part of one load for certain.
  double transferShare = 0;
  std::vector<int64_t> sendNs, fetchNs; ///< per net, the least
  // For one contraction.
  int32_t count = 0;
  std::vector<int32_t> clusterOf;
  std::vector<double> time;  ///< [cluster * kinds + kind]; `Shares::impossible`
  std::vector<double> bytes; ///< resident, per cluster
  std::vector<Cut> cuts;
  bool memoryCounts = false;
  // For one load.
  std::vector<double> fill; ///< per cluster, what its device can compute
  int64_t steps = 0;
};

LoadBound::LoadBound(const Model &model)
    : model(model), graph(model), kinds(deviceClasses(model)),
      staged(model.machine->stagedThrough.has_value()) {
  for (const DeviceClass &kind : kinds)
    if (kind.isStage)
      stages += kind.size();
  switch (model.machine->linkModel) {
  case LinkModel::Unlimited:
  case LinkModel::Parallel:
    break;
  case LinkModel::Duplex:
    transferShare = 0.5; // of the sides of a device the busier
    break;
  case LinkModel::Sequential:
    transferShare = 1;
    break;
  }
  if (staged)
    transferShare = 1;
  int32_t stage = model.machine->stage();
  for (int32_t net = 0; net < graph.numNets(); ++net) {
    int64_t send = never, fetch = never;
    if (staged)
      for (const DeviceClass &kind : kinds) {
        if (kind.isStage)
          continue;
        for (int32_t d : kind.devices) {
          send = std::min(send, graph.transferNs(net, d, stage));
          fetch = std::min(fetch, graph.transferNs(net, stage, d));
        }
      }
    else
      for (int32_t c = 0; c < graph.classes; ++c)
        send = fetch = std::min(
            send, graph.transfer[static_cast<size_t>(net) * graph.classes + c]);
    sendNs.push_back(send == never ? 0 : send);
    fetchNs.push_back(fetch == never ? 0 : fetch);
  }
  double all = 0;
  for (int64_t resident : graph.resident)
    all += static_cast<double>(resident);
  for (const DeviceClass &kind : kinds)
    memoryCounts |= all > static_cast<double>(kind.memory);
}

/// The least load of a device or link that a net makes when it is cut.
int64_t LoadBound::cutNs(int32_t net) const {
  // Stages share their memory: what is cut between two of them is free.
  if (staged)
    return stages > 1 ? 0 : std::min(sendNs[net], fetchNs[net]);
  return model.machine->linkModel == LinkModel::Unlimited ? 0 : sendNs[net];
}

/// Joins what no placement of a load up to \p load cuts.
void LoadBound::contract(int64_t load) {
  grouping::DisjointSets sets(graph.numVertices());
  for (int32_t net = 0; net < graph.numNets(); ++net)
    if (cutNs(net) > load)
      for (int32_t user : graph.users[net])
        sets.join(graph.producer[net], user);
  clusterOf = sets.number(count);
  time.assign(static_cast<size_t>(count) * kinds.size(), 0);
  bytes.assign(count, 0);
  for (int32_t v = 0; v < graph.numVertices(); ++v) {
    bytes[clusterOf[v]] += static_cast<double>(graph.resident[v]);
    for (size_t k = 0; k < kinds.size(); ++k) {
      double &sum = time[clusterOf[v] * kinds.size() + k];
      int32_t d = kinds[k].front();
      sum = graph.mayUse(v, d) ? sum + static_cast<double>(graph.timeOf(v, d))
                               : Shares::impossible;
    }
  }
}

/// Minimum cuts around the clusters with most to do.
void LoadBound::findCuts() {
  cuts.clear();
  if (transferShare == 0)
    return;
  std::vector<double> least(count, Shares::impossible); // time off the stages
  double most = 0;
  for (int32_t c = 0; c < count; ++c) {
    for (size_t k = 0; k < kinds.size(); ++k)
      if (!(staged && kinds[k].isStage))
        least[c] = std::min(least[c], time[c * kinds.size() + k]);
    if (least[c] != Shares::impossible)
      most += least[c];
  }
  for (int32_t net = 0; net < graph.numNets(); ++net)
    most += static_cast<double>(sendNs[net] + fetchNs[net]);
  std::vector<int32_t> pins;
  std::vector<std::pair<size_t, size_t>> range;
  std::vector<CutFlow::Net> nets;
  for (int32_t net = 0; net < graph.numNets(); ++net) {
    int32_t from = clusterOf[graph.producer[net]];
    size_t begin = pins.size();
    for (int32_t user : graph.users[net])
      if (clusterOf[user] != from)
        pins.push_back(clusterOf[user]);
    std::sort(pins.begin() + static_cast<ptrdiff_t>(begin), pins.end());
    pins.erase(
        std::unique(pins.begin() + static_cast<ptrdiff_t>(begin), pins.end()),
        pins.end());
    if (pins.size() == begin)
      continue;
    range.emplace_back(begin, pins.size());
    nets.push_back({from,
                    {},
                    static_cast<double>(sendNs[net]),
                    static_cast<double>(fetchNs[net])});
  }
  for (size_t k = 0; k < nets.size(); ++k)
    nets[k].users = std::span(pins).subspan(range[k].first,
                                            range[k].second - range[k].first);
  CutFlow flow(count, nets);
  std::vector<int32_t> order(count);
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(),
                   [&](int32_t a, int32_t b) { return least[a] > least[b]; });
  std::vector<double> weight(count);
  // Prices of a unit's time and of a transfer's; of the load, 0: as it is.
  struct Prices {
    double time, transfer, load;
  };
  std::vector<Prices> all;
  if (staged) {
    all.push_back({1, 1, 0});
    for (double price : {1.25, 1.6, 2.2, 4.0})
      all.push_back({price - 1, price, price});
  } else {
    // The larger of the two is at least any mean of them.
    for (double timely : {0.5, 0.25, 0.75})
      all.push_back({timely, (1 - timely) * transferShare, 0});
  }
  for (const Prices &prices : all) {
    for (int32_t c = 0; c < count; ++c)
      // Those that cannot be on such a device cost more than everything.
      weight[c] = least[c] == Shares::impossible ? 4 * most + 1
                                                 : prices.time * least[c];
    for (int32_t c : order)
      if (steps > 0 && least[c] != Shares::impossible)
        cuts.push_back(
            {c, prices.load, flow.least(c, weight, prices.transfer, steps)});
  }
}

/// Dual feasible functions of one parameter: shares whose sum is at most 1
/// have images whose sum is at most 1, but large shares have larger images.
/// From 1 on those of Fekete and Schepers (2001), u(k); below that the
/// threshold of Martello and Toth's second bound of bin packing (1990).
double enlarge(double share, double parameter) {
  constexpr double slack = 1e-9;
  if (parameter < 1) {
    if (share > 1 - parameter + slack)
      return 1;
    return share < parameter - slack ? 0 : share;
  }
  double times = (parameter + 1) * share, whole = std::floor(times + slack);
  return std::abs(times - whole) < 2 * slack ? share : whole / parameter;
}

/// Whether the clusters do not go into the devices, each taking the share
/// \p shareOf(cluster, kind, its time in the room for it) of one.
template <typename ShareOf>
bool LoadBound::exceeds(int64_t load, ShareOf shareOf) const {
  auto room = static_cast<double>(load);
  double slack = 1e-9 * room + 1e-6;
  Shares shares;
  for (const DeviceClass &kind : kinds)
    shares.devices.push_back(kind.size());
  shares.share.reserve(time.size());
  for (int32_t c = 0; c < count; ++c)
    for (size_t k = 0; k < kinds.size(); ++k) {
      double most = staged && kinds[k].isStage ? room : fill[c];
      double ns = time[c * kinds.size() + k];
      bool fits = ns <= most + slack &&
                  bytes[c] <= static_cast<double>(kinds[k].memory) * (1 + 1e-9);
      shares.share.push_back(
          fits ? shareOf(c, k, ns == 0 ? 0 : std::min(1.0, ns / most))
               : Shares::impossible);
    }
  constexpr double tooMuch = 1 + 1e-7;
  return shares.price(tooMuch) >= tooMuch;
}

/// True when no placement has a load of \p load or less.
bool LoadBound::refutes(int64_t load) {
  auto room = static_cast<double>(load);
  double slack = 1e-9 * room + 1e-6;
  fill.assign(count, room);
  for (const Cut &cut : cuts) {
    double &most = fill[cut.cluster];
    if (cut.price > 0)
      most = std::min(most, cut.price * room - cut.least + slack);
    else if (cut.least > room + slack)
      most = -1;
  }
  auto byTime = [](int32_t, size_t, double part) { return part; };
  if (exceeds(load, byTime))
    return true;
  auto ofMemory = [&](int32_t c, size_t k) {
    return bytes[c] == 0
               ? 0
               : std::min(1.0, bytes[c] / static_cast<double>(kinds[k].memory));
  };
  if (memoryCounts) {
    // Some kinds by their memory, the others by time...
    constexpr size_t manyKinds = 3;
    unsigned sets = kinds.size() <= manyKinds ? 1u << kinds.size() : 1;
    for (unsigned set = 1; set < sets; ++set)
      if (exceeds(load, [&](int32_t c, size_t k, double part) {
            return set >> k & 1 ? ofMemory(c, k) : part;
          }))
        return true;
    // ...or all by a mean of both.
    for (double timely : {0.75, 0.5, 0.25})
      if (exceeds(load, [&](int32_t c, size_t k, double part) {
            return timely * part + (1 - timely) * ofMemory(c, k);
          }))
        return true;
  }
  // Small clusters go in anywhere.
  constexpr size_t manyItems = 2000;
  if (time.size() > manyItems)
    return false;
  std::fill(fill.begin(), fill.end(), room);
  std::vector<double> parameters;
  for (double ns : time)
    if (ns > 0 && ns <= room / 2)
      parameters.push_back(ns / room);
  std::sort(parameters.begin(), parameters.end());
  parameters.erase(std::unique(parameters.begin(), parameters.end()),
                   parameters.end());
  constexpr size_t thresholds = 12;
  if (size_t all = parameters.size(); all > thresholds) {
    for (size_t k = 0; k < thresholds; ++k)
      parameters[k] = parameters[(k + 1) * all / thresholds - 1];
    parameters.resize(thresholds);
  }
  parameters.insert(parameters.end(),
                    {1, 2, 3, 4, 5, 6, 7, 0.1, 0.2, 0.3, 0.4});
  for (double parameter : parameters)
    if (exceeds(load, [&](int32_t, size_t, double part) {
          return enlarge(part, parameter);
        }))
      return true;
  return false;
}

Bound LoadBound::run(Bound known) {
  constexpr size_t manyKinds = 8;
  constexpr int32_t manyVertices = 4000;
  if (kinds.size() > manyKinds || graph.numVertices() > manyVertices)
    return known;
  // Up from the known bound in steps, as long as they are refuted; then
  // between the last two.
  constexpr int rungs = 24;
  constexpr double ratio = 1.15;
  constexpr int64_t far = std::numeric_limits<int64_t>::max() / 4;
  int64_t low = known.value, high = low;
  for (int rung = 0; rung < rungs && high == low && low < far; ++rung) {
    high = static_cast<int64_t>(static_cast<double>(low) * ratio) + 1;
    contract(high);
    steps = 3'000'000;
    findCuts();
    if (refutes(high))
      low = ++high;
  }
  // What is below low is refuted, high is not or was not looked at.
  while (low < high) {
    int64_t middle = low + (high - low) / 2;
    if (refutes(middle))
      low = middle + 1;
    else
      high = middle;
  }
  if (low > known.value)
    known = {low, "work and transfers that cannot be saved"};
  return known;
}

} // namespace

int64_t baechi::placement::bounds::workBySpeed(const Model &model) {
  Shares shares;
  auto kinds = deviceClasses(model);
  for (const DeviceClass &kind : kinds)
    shares.devices.push_back(kind.size());
  std::vector<int64_t> time(kinds.size());
  for (Unit u = 0; u < model.numUnits; ++u)
    for (const DeviceClass &kind : kinds) {
      int32_t d = kind.front();
      int64_t sum = 0;
      for (int32_t i : model.members[u])
        sum += std::max<int64_t>(model.timeOf(i, d), 0);
      shares.share.push_back(model.mayUse(u, d) ? static_cast<double>(sum)
                                                : Shares::impossible);
    }
  // Sums of doubles may be off by a little.
  return static_cast<int64_t>(std::ceil(shares.price() * (1 - 1e-9) - 1e-6));
}

Bound baechi::placement::bounds::raiseMaxLoadBound(const Model &model,
                                                   Bound known) {
  return LoadBound(model).run(std::move(known));
}

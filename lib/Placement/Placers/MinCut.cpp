//===- MinCut.cpp - Placement by graph partitioning -------------*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// A balanced partition of the operators that cuts little traffic, the
/// "Scotch" baseline of Mirhoseini et al. (ICML 2017) and of Tarnawski et al.
/// (NeurIPS 2020): it knows loads and bytes, but not that operators wait for
/// each other.
///
//===----------------------------------------------------------------------===//

#include "Placers/Baselines.h"

#include "Baechi/Placement/Placers/Partitioner.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <tuple>

using namespace baechi::placement;
using namespace baechi::placement::placers;

namespace {

/// How far the parts may exceed their shares: balance costs transfers, and
/// which of them cost more depends on the graph.
constexpr double imbalances[] = {0.05, 0.3, 0.6};

/// The traffic between units: the mean time of a tensor's transfer, once per
/// unit that reads it.
std::vector<PartitionProblem::Edge> trafficEdges(const Model &model) {
  std::vector<PartitionProblem::Edge> edges;
  // A tensor counts as often as it is read: no sum may overflow.
  int64_t most = std::numeric_limits<int64_t>::max() /
                 (static_cast<int64_t>(model.users.items.size()) + 1);
  std::vector<Unit> readers;
  for (int32_t t = 0; t < model.numTensors; ++t) {
    Unit from = model.unit[model.producer[t]];
    readers.clear();
    for (int32_t user : model.users[t])
      if (model.unit[user] != from)
        readers.push_back(model.unit[user]);
    std::sort(readers.begin(), readers.end());
    readers.erase(std::unique(readers.begin(), readers.end()), readers.end());
    for (Unit to : readers)
      edges.push_back({std::min(from, to), std::max(from, to),
                       std::min(model.meanTransfer(t), most)});
  }
  std::sort(edges.begin(), edges.end(), [](const auto &x, const auto &y) {
    return std::tie(x.a, x.b, x.weight) < std::tie(y.a, y.b, y.weight);
  });
  size_t kept = 0;
  for (size_t k = 1; k < edges.size(); ++k)
    if (edges[k].a == edges[kept].a && edges[k].b == edges[kept].b)
      edges[kept].weight += edges[k].weight;
    else
      edges[++kept] = edges[k];
  if (!edges.empty())
    edges.resize(kept + 1);
  return edges;
}

/// The devices that some unit may use, and what share of the work each should
/// do: in proportion to its speed on the units that it may run.
struct Parts {
  std::vector<int32_t> device;
  std::vector<double> share;

  Parts(const Model &model, const std::vector<int64_t> &work);
};

Parts::Parts(const Model &model, const std::vector<int64_t> &work) {
  double sum = 0;
  for (int32_t d = 0; d < model.numDevices; ++d) {
    double mean = 0, own = 0;
    bool used = false;
    for (Unit u = 0; u < model.numUnits; ++u) {
      if (!model.mayUse(u, d))
        continue;
      used = true;
      mean += static_cast<double>(work[u]);
      for (int32_t i : model.members[u])
        own += static_cast<double>(model.timeOf(i, d));
    }
    if (!used)
      continue;
    device.push_back(d);
    share.push_back((mean + 1) / (own + 1));
    sum += share.back();
  }
  for (double &s : share)
    s /= sum;
}

/// Units on devices that they may not use go to the one they may use that they
/// talk to most.
void settleForbidden(const Model &model, const PartitionProblem &graph,
                     std::vector<int32_t> &home) {
  std::vector<uint8_t> forbidden(model.numUnits);
  for (Unit u = 0; u < model.numUnits; ++u)
    forbidden[u] = !model.mayUse(u, home[u]);
  if (std::find(forbidden.begin(), forbidden.end(), 1) == forbidden.end())
    return;
  std::vector<int64_t> traffic(
      static_cast<size_t>(model.numUnits) * model.numDevices, 0);
  for (const auto &edge : graph.edges)
    for (auto [u, other] : {std::pair(edge.a, edge.b), {edge.b, edge.a}})
      if (forbidden[u])
        traffic[static_cast<size_t>(u) * model.numDevices + home[other]] +=
            edge.weight;
  for (Unit u = 0; u < model.numUnits; ++u) {
    if (!forbidden[u])
      continue;
    int64_t most = -1;
    for (int32_t d = 0; d < model.numDevices; ++d) {
      int64_t with = traffic[static_cast<size_t>(u) * model.numDevices + d];
      if (model.mayUse(u, d) && with > most) {
        most = with;
        home[u] = d;
      }
    }
  }
}

} // namespace

Proposals
baechi::placement::placers::proposeMinCut(const PlacerContext &context) {
  const Partitioner *partitioner = context.options.partitioner;
  // Asked for it is an error, as one of the candidates it is left out.
  if (!partitioner && context.options.placer != "min-cut")
    return {};
  if (!partitioner)
    return {
        {},
        "there is no graph partitioner: build with BAECHI_ENABLE_SCOTCH and "
        "use baechi-place, or set PlaceOptions::partitioner"};
  // Colocation groups only: it is compared with our grouping steps, too.
  const Model &model = context.model;
  PartitionProblem graph;
  graph.weight.assign(model.numUnits, 0);
  for (int32_t i = 0; i < model.numNodes; ++i)
    graph.weight[model.unit[i]] += model.meanTime(i);
  graph.edges = trafficEdges(model);
  Parts parts(model, graph.weight);
  graph.share = parts.share;
  graph.fixed.assign(model.numUnits, -1);
  for (Unit u = 0; u < model.numUnits; ++u)
    if (model.pinned(u))
      for (size_t p = 0; p < parts.device.size(); ++p)
        if (model.mayUse(u, parts.device[p]))
          graph.fixed[u] = static_cast<int32_t>(p);
  Proposals result;
  for (double imbalance : imbalances) {
    graph.imbalance = imbalance;
    std::vector<int32_t> part;
    if (std::string error = partitioner->partition(graph, part); !error.empty())
      return {{}, error};
    std::vector<int32_t> home(model.numUnits);
    for (Unit u = 0; u < model.numUnits; ++u)
      home[u] = parts.device[part[u]];
    settleForbidden(model, graph, home);
    result.list.push_back(
        {fmt::format("{:.0f}%", 100 * imbalance), perNode(model, home)});
  }
  return result;
}

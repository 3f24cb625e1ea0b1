//===- Pieces.cpp - Where pieces of operators go together -------*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Lanes are Megatron's and data parallel training's ranks; owners of what is
/// updated are those of ZeRO's first stage (Rajbhandari et al. 2020); stages of
/// even work are torchgpipe's (Kim et al. 2020, section 3.3).
///
//===----------------------------------------------------------------------===//

#include "Placers/Pieces.h"
#include "Grouping/Clusters.h"
#include "Placers/Baselines.h"
#include "Placers/Placers.h"

#include <algorithm>
#include <charconv>
#include <limits>
#include <numeric>

using namespace baechi::placement;
using namespace baechi::placement::placers;

/// Nowhere yet.
static constexpr int32_t open = -1;

int32_t baechi::placement::placers::pieceOf(std::string_view name) {
  constexpr std::string_view mark = ".piece";
  size_t at = name.rfind(mark);
  if (at == std::string_view::npos)
    return -1;
  const char *begin = name.data() + at + mark.size();
  const char *end = name.data() + name.size();
  int32_t number = -1;
  auto [rest, error] = std::from_chars(begin, end, number);
  // "#1" makes names different.
  bool isWhole = rest == end || *rest == '#';
  return error == std::errc() && isWhole && number >= 0 ? number : -1;
}

/// The device of each unit that has pieces of one number: as many lanes as the
/// largest number says, neighbours share a device where there are fewer.
static std::vector<int32_t> laneOf(const Graph &graph, const Model &model) {
  std::vector<int32_t> home(model.numUnits, open);
  int64_t lanes = 0;
  for (const Operator &op : graph.ops)
    lanes = std::max(lanes, int64_t(pieceOf(op.name)) + 1);
  if (lanes < 2)
    return {};
  for (int32_t i = 0; i < model.numNodes; ++i) {
    Unit u = model.unit[i];
    int64_t lane = pieceOf(graph.ops[i].name);
    if (lane < 0 || home[u] != open)
      continue;
    if (lanes > model.numDevices)
      lane = lane * model.numDevices / lanes;
    if (model.mayUse(u, static_cast<int32_t>(lane)))
      home[u] = static_cast<int32_t>(lane);
  }
  return home;
}

/// m-ETF where \p home leaves it open.
static Proposal around(const Model &model, const std::vector<int32_t> &home) {
  Model lanes = model;
  for (Unit u = 0; u < model.numUnits; ++u)
    for (int32_t d = 0; home[u] != open && d < model.numDevices; ++d)
      lanes.allowed[static_cast<size_t>(u) * model.numDevices + d] =
          d == home[u];
  grouping::Coarsening joined = grouping::Coarsening::identity(lanes);
  grouping::coplace(lanes, joined);
  Model grouped = grouping::coarsen(lanes, joined);
  EarliestStart found = earliestStart(grouped);
  return ungrouped(joined, found.device, found.start);
}

/// The one lane that a unit reads what it computes of; `open` where it reads
/// several or none.
static int32_t laneReadBy(const Model &model, Unit u,
                          const std::vector<int32_t> &home) {
  int32_t found = open;
  bool several = false;
  for (int32_t i : model.members[u])
    model.forEachSource(i, [&](int32_t source) {
      int32_t lane = home[model.unit[source]];
      several |= found != open && lane != open && lane != found;
      found = lane != open ? lane : found;
    });
  return several || found == open || !model.mayUse(u, found) ? open : found;
}

/// What holds memory where its gradient is, or to the device that has the
/// fewest bytes, the largest first; all else to its first reader's.
static Assignment byOwners(const Graph &graph, const Model &model,
                           std::vector<int32_t> home) {
  std::vector<Unit> holders;
  for (Unit u = 0; u < model.numUnits; ++u)
    if (home[u] == open && model.unitResident[u] > 0)
      holders.push_back(u);
  std::stable_sort(holders.begin(), holders.end(), [&](Unit a, Unit b) {
    return model.unitResident[a] > model.unitResident[b];
  });
  std::vector<int64_t> bytes(model.numDevices, 0);
  const std::vector<int32_t> lanes = home;
  for (Unit u : holders) {
    home[u] = laneReadBy(model, u, lanes);
    bool laneOpen = home[u] == open;
    for (int32_t d = 0; d < model.numDevices; ++d)
      if (laneOpen && model.mayUse(u, d) &&
          (home[u] == open || bytes[d] < bytes[home[u]]))
        home[u] = d;
    bytes[home[u]] += model.unitResident[u];
  }
  for (auto i = model.order.rbegin(); i != model.order.rend(); ++i) {
    int32_t &d = home[model.unit[*i]];
    model.forEachUser(*i, [&](int32_t user) {
      int32_t there = home[model.unit[user]];
      if (d == open && there != open && model.mayUse(model.unit[*i], there))
        d = there;
    });
  }
  followOperands(graph, model, home);
  return perNode(model, home);
}

namespace {
/// Units by the parameter that they go with.
class Layers {
public:
  /// Of the units that \p home leaves open.
  Layers(const Graph &graph, const Model &model,
         const std::vector<int32_t> &home)
      : graph(graph), model(model), home(home), layer(model.numUnits, open),
        first(model.numUnits, std::numeric_limits<int32_t>::max()) {
    findParameters();
    followReaders();
    followNeighbours();
  }

  /// Contiguous layers of even work on each device, \p rounds times in turn.
  std::vector<int32_t> inStages(int32_t rounds) const;

private:
  bool isParameter(Unit u) const { return layer[u] == u; }
  bool isFree(Unit u) const { return home[u] == open && layer[u] == open; }

  /// What holds memory and is computed: an argument with its next value.
  void findParameters() {
    for (Unit u = 0; u < model.numUnits; ++u)
      if (home[u] == open && model.unitResident[u] > 0 &&
          model.members[u].size() > 1)
        layer[u] = u;
  }

  /// Those that read a parameter, the largest where they read several; then
  /// what makes the parameter's next value.
  void followReaders() {
    for (const Edge &edge : graph.edges) {
      Unit from = model.unit[edge.from], to = model.unit[edge.to];
      if (edge.output < 0 || from == to || !isParameter(from) ||
          isParameter(to) || home[to] != open)
        continue;
      first[from] = std::min(first[from], edge.to);
      Unit &known = layer[to];
      if (known == open || model.unitResident[from] > model.unitResident[known])
        known = from;
    }
    for (auto i = model.order.rbegin(); i != model.order.rend(); ++i) {
      Unit u = model.unit[*i];
      bool reads = false;
      model.forEachUser(*i, [&](int32_t user) {
        Unit to = model.unit[user];
        if (!reads && isFree(u) && isParameter(to)) {
          layer[u] = to;
          reads = true;
        }
      });
    }
  }

  /// The rest: with the last of what it reads, or with what reads it.
  void followNeighbours() {
    for (int32_t i : model.order) {
      Unit u = model.unit[i];
      if (!isFree(u))
        continue;
      int32_t last = -1;
      model.forEachSource(i, [&](int32_t source) {
        if (layer[model.unit[source]] != open)
          last = std::max(last, source);
      });
      if (last >= 0)
        layer[u] = layer[model.unit[last]];
    }
    for (auto i = model.order.rbegin(); i != model.order.rend(); ++i)
      model.forEachUser(*i, [&](int32_t user) {
        if (Unit u = model.unit[*i]; isFree(u))
          layer[u] = layer[model.unit[user]];
      });
  }

  const Graph &graph;
  const Model &model;
  const std::vector<int32_t> &home;
  std::vector<Unit> layer;    ///< per unit
  std::vector<int32_t> first; ///< of a parameter: the first that reads it
};
} // namespace

std::vector<int32_t> Layers::inStages(int32_t rounds) const {
  std::vector<int64_t> work(model.numUnits, 0);
  int64_t total = 0;
  for (int32_t i = 0; i < model.numNodes; ++i)
    if (Unit u = layer[model.unit[i]]; u != open) {
      work[u] += model.meanTime(i);
      total += model.meanTime(i);
    }
  std::vector<Unit> parameters;
  for (Unit u = 0; u < model.numUnits; ++u)
    if (isParameter(u))
      parameters.push_back(u);
  std::stable_sort(parameters.begin(), parameters.end(),
                   [&](Unit a, Unit b) { return first[a] < first[b]; });
  std::vector<int32_t> stage(model.numUnits, open);
  int32_t stages = rounds * model.numDevices;
  int64_t before = 0;
  for (Unit u : parameters) {
    double middle =
        static_cast<double>(before) + static_cast<double>(work[u]) / 2;
    before += work[u];
    if (total > 0)
      stage[u] = std::min(stages - 1,
                          static_cast<int32_t>(middle * stages /
                                               static_cast<double>(total))) %
                 model.numDevices;
  }
  std::vector<int32_t> found = home;
  for (Unit u = 0; u < model.numUnits; ++u)
    if (found[u] == open && layer[u] != open && stage[layer[u]] != open &&
        model.mayUse(u, stage[layer[u]]))
      found[u] = stage[layer[u]];
  return found;
}

static Assignment byStages(const Graph &graph, const Model &model,
                           const std::vector<int32_t> &home, int32_t rounds) {
  std::vector<int32_t> found = Layers(graph, model, home).inStages(rounds);
  followOperands(graph, model, found);
  return perNode(model, found);
}

/// What no lane has on the first device: where few layers are in pieces the
/// others are a chain, which several devices only send back and forth.
static std::vector<int32_t> withFirst(const Model &model,
                                      std::vector<int32_t> home) {
  for (Unit u = 0; u < model.numUnits; ++u)
    if (home[u] == open && model.mayUse(u, 0))
      home[u] = 0;
  return home;
}

std::vector<Proposal>
baechi::placement::placers::proposePieces(const Problem &problem,
                                          const Model &model) {
  const Graph &graph = problem.graph;
  std::vector<int32_t> lanes = laneOf(graph, model);
  if (lanes.empty() || model.numDevices < 2)
    return {};
  std::vector<Proposal> found;
  auto add = [&](Proposal proposal, const char *variant) {
    proposal.variant = variant;
    proposal.mayRepair = false;
    found.push_back(std::move(proposal));
  };
  add(around(model, lanes), "lanes");
  add(around(model, withFirst(model, lanes)), "lanes:first");
  add({"", byOwners(graph, model, lanes)}, "owners");
  std::vector<int32_t> none(model.numUnits, open);
  add({"", byStages(graph, model, lanes, 1)}, "lanes:stages");
  add({"", byStages(graph, model, lanes, 2)}, "lanes:rounds");
  add({"", byStages(graph, model, none, 1)}, "stages");
  add({"", byStages(graph, model, none, 2)}, "rounds");
  return found;
}

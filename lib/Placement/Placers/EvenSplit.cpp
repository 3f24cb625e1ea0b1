//===- EvenSplit.cpp - Contiguous pieces of even weight ---------*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// What tools do that know a model as a list of layers: the list is cut into
/// one piece a device.
/// - By memory, as Hugging Face Accelerate's `device_map="balanced"`: what
/// holds
///   parameters, in the order in which the program defines it, is cut into
///   pieces of even bytes; an operator runs where the parameters that it reads
///   are, or else where its first operand is.
/// - By work, as torchgpipe (Kim et al. 2020, section 3.3): the operators in
///   topological order are cut into pieces of even time.
/// Gradients run where their layer is, as autograd has it.
///
//===----------------------------------------------------------------------===//

#include "Grouping/Forward.h"
#include "Placers/Baselines.h"

#include <algorithm>
#include <cstdlib>
#include <limits>
#include <numeric>

using namespace baechi::placement;
using namespace baechi::placement::placers;

namespace {

/// \p candidates by their first forward node (backward ones come last), nodes
/// by \p position.
void sortByFirst(const Problem &problem, const Model &model,
                 const std::vector<int32_t> &position,
                 std::vector<Unit> &candidates) {
  std::vector<std::pair<bool, int32_t>> first(
      model.numUnits, {true, std::numeric_limits<int32_t>::max()});
  for (int32_t i = 0; i < model.numNodes; ++i) {
    auto &key = first[model.unit[i]];
    key = std::min(key, {problem.graph.ops[i].backward, position[i]});
  }
  std::sort(candidates.begin(), candidates.end(),
            [&](Unit a, Unit b) { return first[a] < first[b]; });
}

/// Cuts \p units: each goes to the device in whose even share of the weight its
/// middle lies, or to the nearest one that may run it. The others get -1.
std::vector<int32_t> cut(const Model &model, const std::vector<Unit> &units,
                         const std::vector<int64_t> &weight) {
  __int128 total = 0, before = 0;
  for (Unit u : units)
    total += weight[u];
  std::vector<int32_t> home(model.numUnits, -1);
  for (Unit u : units) {
    __int128 middle = 2 * before + weight[u];
    before += weight[u];
    int32_t wanted = 0;
    if (total > 0)
      wanted = static_cast<int32_t>(std::min<__int128>(
          model.numDevices - 1, middle * model.numDevices / (2 * total)));
    for (int32_t d = 0; d < model.numDevices; ++d)
      if (model.mayUse(u, d) &&
          (home[u] < 0 || std::abs(d - wanted) < std::abs(home[u] - wanted)))
        home[u] = d;
  }
  return home;
}

Proposal byWork(const Problem &problem, const Model &model) {
  std::vector<int64_t> work(model.numUnits, 0);
  for (int32_t i = 0; i < model.numNodes; ++i)
    work[model.unit[i]] += model.meanTime(i);
  std::vector<int32_t> position(model.numNodes);
  for (int32_t k = 0; k < model.numNodes; ++k)
    position[model.order[k]] = k;
  std::vector<Unit> all(model.numUnits);
  std::iota(all.begin(), all.end(), 0);
  sortByFirst(problem, model, position, all);
  return {"work", perNode(model, cut(model, all, work))};
}

Proposal byMemory(const Problem &problem, const Model &model) {
  std::vector<Unit> holders;
  for (Unit u = 0; u < model.numUnits; ++u)
    if (model.unitResident[u] > 0)
      holders.push_back(u);
  std::vector<int32_t> position(model.numNodes);
  std::iota(position.begin(), position.end(), 0);
  sortByFirst(problem, model, position, holders);
  std::vector<int32_t> home = cut(model, holders, model.unitResident);
  // Those that read parameters run where these are.
  std::vector<int32_t> layer = home;
  for (const Edge &edge : problem.graph.edges)
    if (int32_t &d = layer[model.unit[edge.to]]; d < 0 && edge.output >= 0)
      d = home[model.unit[edge.from]];
  followOperands(problem.graph, model, layer);
  return {"memory", perNode(model, layer)};
}

} // namespace

Proposals
baechi::placement::placers::proposeEvenSplit(const PlacerContext &context) {
  // The operators as they are, a forward operator with its gradients: grouping
  // steps would move them away from their neighbours.
  grouping::Coarsening layers = grouping::Coarsening::identity(context.model);
  grouping::followForward(context.problem, context.model, layers);
  Model model = grouping::coarsen(context.model, layers);
  Proposals result;
  result.list.push_back(byWork(context.problem, model));
  if (std::any_of(model.unitResident.begin(), model.unitResident.end(),
                  [](int64_t bytes) { return bytes > 0; }))
    result.list.push_back(byMemory(context.problem, model));
  return result;
}

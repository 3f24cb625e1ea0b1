//===- GroupingSteps.cpp - Grouping step by step ------------------------*- C++
//-*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Session/GroupingSteps.h"
#include "Grouping/Clusters.h"
#include "Grouping/Forward.h"
#include "Memory/Memory.h"
#include "Placers/Placers.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

using namespace baechi::placement;
using namespace baechi::placement::session;

namespace {

/// The grouping so far, and what it says about itself.
class Grouper {
public:
  Grouper(const Problem &problem, const Model &model)
      : problem(problem), model(model), unitWork(model.numUnits, 0),
        unitBytes(model.numUnits, 0) {
    result.coarsening = grouping::Coarsening::identity(model);
    for (int32_t i = 0; i < model.numNodes; ++i) {
      unitWork[model.unit[i]] += model.meanTime(i);
      unitBytes[model.unit[i]] += model.resident[i];
      auto [begin, end] = model.tensorsOf(i);
      for (int32_t t = begin; t < end; ++t)
        unitBytes[model.unit[i]] += model.memory[t];
    }
  }
  void apply(const std::string &name);
  Grouping take() { return std::move(result); }

private:
  bool unitsJoined(const grouping::Coarsening &whole) const {
    return whole.numUnits < model.numUnits;
  }
  bool nodesFused(const grouping::Coarsening &whole) const {
    return whole.numNodes < model.numNodes;
  }
  void forward(grouping::Coarsening &whole, std::vector<std::string> &notes);
  void joinCoplaced(grouping::Coarsening &whole);
  void joinLevels();
  void fuseNodes(grouping::Coarsening &whole);
  void applyTo(grouping::Coarsening &whole, const std::string &name,
               std::vector<std::string> &notes);
  double largestShare(const std::vector<int64_t> &weights) const;

  const Problem &problem;
  const Model &model;
  std::vector<int64_t> unitWork, unitBytes;
  Grouping result;
};

/// Undone when no assignment is found that fits: single operators may.
void Grouper::forward(grouping::Coarsening &whole,
                      std::vector<std::string> &notes) {
  const auto &ops = problem.graph.ops;
  if (std::none_of(ops.begin(), ops.end(),
                   [](const Operator &op) { return op.forward.has_value(); })) {
    notes.push_back("grouping step 'forward' has nothing to do: no "
                    "operator of the graph names its forward operator");
    return;
  }
  grouping::Coarsening joined = whole;
  int32_t apart = grouping::followForward(problem, model, joined);
  grouping::Coarsening unfused = joined;
  unfused.numNodes = model.numNodes;
  std::iota(unfused.node.begin(), unfused.node.end(), 0);
  Model units = grouping::coarsen(model, unfused);
  Assignment filled = placers::fillInOrder(units), packed(units.numNodes);
  memory::packUnits(units, packed);
  if (!memory::repair(units, filled) && !memory::repair(units, packed)) {
    notes.push_back(
        "grouping step 'forward' is left out: with every backward operator on "
        "the device of its forward operator no assignment was found that fits "
        "the memories");
    return;
  }
  if (apart > 0)
    notes.push_back(
        fmt::format("grouping step 'forward': {} backward operators do not "
                    "follow their forward operators, because no device may "
                    "hold both or the group would be too large",
                    apart));
  whole = std::move(joined);
}

void Grouper::joinCoplaced(grouping::Coarsening &whole) {
  if (!unitsJoined(whole) && !nodesFused(whole)) {
    grouping::coplace(model, whole);
    return;
  }
  Model current = grouping::coarsen(model, whole);
  grouping::Coarsening step = grouping::Coarsening::identity(current);
  grouping::coplace(current, step);
  for (Unit &u : whole.unit)
    u = step.unit[u];
  whole.numUnits = step.numUnits;
}

/// The first level is what `coplace` makes.
void Grouper::joinLevels() {
  const grouping::Coarsening before = result.coarsening;
  std::vector<std::vector<Unit>> levels =
      unitsJoined(before) || nodesFused(before)
          ? grouping::coplaceLevels(grouping::coarsen(model, before))
          : grouping::coplaceLevels(model);
  for (const std::vector<Unit> &groups : levels) {
    grouping::Coarsening joined = before;
    for (Unit &u : joined.unit)
      u = groups[u];
    joined.numUnits = *std::max_element(groups.begin(), groups.end()) + 1;
    if (&groups == levels.data())
      result.coarsening = std::move(joined);
    else
      result.levels.push_back(std::move(joined));
  }
}

void Grouper::fuseNodes(grouping::Coarsening &whole) {
  if (!nodesFused(whole)) {
    grouping::fuse(model, whole);
    return;
  }
  Model current = grouping::coarsen(model, whole);
  grouping::Coarsening step = grouping::Coarsening::identity(current);
  grouping::fuse(current, step);
  for (int32_t &node : whole.node)
    node = step.node[node];
  whole.numNodes = step.numNodes;
}

/// Of the group that has most of \p weights, one a unit of the model.
double Grouper::largestShare(const std::vector<int64_t> &weights) const {
  std::vector<int64_t> sums(result.coarsening.numUnits, 0);
  int64_t total = 0;
  for (Unit u = 0; u < model.numUnits; ++u) {
    sums[result.coarsening.unit[u]] += weights[u];
    total += weights[u];
  }
  if (total == 0)
    return 0;
  return static_cast<double>(*std::max_element(sums.begin(), sums.end())) /
         static_cast<double>(total);
}

void Grouper::applyTo(grouping::Coarsening &whole, const std::string &name,
                      std::vector<std::string> &notes) {
  if (name == "forward")
    forward(whole, notes);
  else if (name == "coplace" || name == "multilevel")
    joinCoplaced(whole);
  else if (name == "fuse")
    fuseNodes(whole);
}

void Grouper::apply(const std::string &name) {
  GroupingStep step;
  step.name = name;
  step.operatorsBefore = result.coarsening.numNodes;
  step.groupsBefore = result.coarsening.numUnits;
  // The model has done it: there are no units without the graph's groups.
  if (name == "colocate" && result.steps.empty())
    step.groupsBefore = model.numNodes;
  std::vector<std::string> ignored;
  for (grouping::Coarsening &level : result.levels)
    applyTo(level, name, ignored);
  if (name == "multilevel" && result.levels.empty())
    joinLevels();
  else
    applyTo(result.coarsening, name, result.notes);
  step.operatorsAfter = result.coarsening.numNodes;
  step.groupsAfter = result.coarsening.numUnits;
  step.largestWork = largestShare(unitWork);
  step.largestMemory = largestShare(unitBytes);
  result.steps.push_back(std::move(step));
}

} // namespace

const std::vector<std::string> &baechi::placement::groupingNames() {
  static const std::vector<std::string> names{"colocate", "forward", "coplace",
                                              "multilevel", "fuse"};
  return names;
}

Grouping
baechi::placement::session::applySteps(const Problem &problem,
                                       const Model &model,
                                       const std::vector<std::string> &names) {
  Grouper grouper(problem, model);
  for (const std::string &name : names)
    grouper.apply(name);
  return grouper.take();
}

//===- Proposals.cpp - Plans to look at -------------------------*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Nodes/Proposals.h"
#include "Cuts/CutProgram.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

using namespace baechi::placement;
using namespace baechi::placement::nodes;

std::string nodes::nameOf(const Proposal &of, const std::string &way) {
  const ReplicaShape &shape = of.setting->shape;
  return fmt::format("{}, {} stage{} of {}, {} replica{}", way,
                     of.layout.cuts.size(),
                     of.layout.cuts.size() == 1 ? "" : "s", of.layout.lanes,
                     shape.replicas, shape.replicas == 1 ? "" : "s");
}

int32_t nodes::numParts(const Graph &graph) {
  int32_t parts = 0;
  for (const Operator &op : graph.ops)
    parts = std::max(parts, op.part.value_or(-1) + 1);
  return parts;
}

std::vector<Proposal *> Proposer::run(int32_t devices,
                                      std::set<std::string> &notes) {
  std::vector<Proposal *> found;
  for (const ReplicaShape &shape : shapesOf(devices, notes)) {
    auto [it, isNew] = known.try_emplace({shape.replicas, shape.devices});
    if (isNew) {
      it->second.setting =
          std::make_unique<Setting>(problem, alternatives, shape);
      propose(it->second);
    }
    for (Proposal &each : it->second.proposals)
      found.push_back(&each);
  }
  return found;
}

int64_t Proposer::spent() const {
  int64_t cost = 0;
  for (const auto &[shape, of] : known)
    cost += of.setting->cost;
  return cost;
}

int32_t Proposer::numSkipped(int64_t ns) const {
  int64_t count = 0;
  for (const auto &[shape, of] : known)
    count += std::count_if(of.proposals.begin(), of.proposals.end(),
                           [&](const Proposal &each) {
                             return each.isSkipped && each.bound < ns;
                           });
  return static_cast<int32_t>(count);
}

/// Replicas of equal parts of a node, and of whole nodes.
std::vector<ReplicaShape> Proposer::shapesOf(int32_t devices,
                                             std::set<std::string> &notes) {
  std::vector<ReplicaShape> shapes;
  int32_t parts = std::max(numParts(problem.graph), 1);
  for (int32_t each = devicesOfPins(problem); each <= devices; ++each) {
    bool isPart = nodes.devicesPerNode % each == 0;
    bool isWhole = each % nodes.devicesPerNode == 0 && devices % each == 0;
    if (!isPart && !isWhole)
      continue;
    int32_t replicas = std::min(parts, devices / each);
    while (parts % replicas != 0)
      --replicas;
    ReplicaShape shape{replicas, each};
    bool isKnown = known.count({replicas, each}) != 0;
    if (std::string why =
            isKnown ? "" : whyNoReplicas(problem, alternatives, shape);
        !why.empty()) {
      if (replicas > 1)
        notes.insert("no replicas: " + why);
      shape.replicas = 1;
    }
    shapes.push_back(shape);
  }
  return shapes;
}

void Proposer::propose(Known &of) {
  const Setting &setting = *of.setting;
  std::map<std::string, int32_t> names = {{"", 1}};
  for (size_t op = 0; op < setting.likes.size(); ++op)
    if (setting.likes[op] > 0)
      for (const Alternative &way : setting.replica.alternatives.of[op]) {
        int32_t &lanes = names[way.name];
        lanes = std::max(lanes, static_cast<int32_t>(way.pieces.size()));
      }
  std::set<int32_t> lanesSeen;
  for (const auto &[name, lanes] : names) {
    if (nodes.devicesPerNode % lanes != 0)
      continue;
    add(of, name.empty() ? "whole" : name, setting.waysNamed(name), lanes);
    if (lanes > 1 && lanesSeen.insert(lanes).second && mixes)
      addMixed(of, lanes);
  }
}

/// In as many stages as there are devices for.
void Proposer::add(Known &of, const std::string &name, const Ways &ways,
                   int32_t lanes) {
  Setting &setting = *of.setting;
  if (setting.shape.devices % lanes != 0)
    return;
  int32_t most = setting.shape.devices / lanes;
  std::vector<int64_t> load = setting.loads(ways, lanes);
  int32_t stages = std::min(most, setting.chain.numLinks);
  std::set<std::vector<int32_t>> seen;
  for (auto cuts : {narrowCuts(load, setting.chain.crossing, stages),
                    evenCuts(load, stages), balancedCuts(load, stages)}) {
    if (!seen.insert(cuts).second)
      continue;
    Proposal each;
    each.setting = &setting;
    each.layout = {lanes, std::move(cuts), ways};
    each.name = nameOf(each, name);
    each.bound = setting.lowerBound(each.layout);
    of.proposals.push_back(std::move(each));
  }
}

/// Ways by the pairwise program: of one part, on the devices of a stage.
void Proposer::addMixed(Known &of, int32_t lanes) {
  const Setting &setting = *of.setting;
  auto [it, isNew] = mixed.try_emplace(lanes);
  if (isNew)
    it->second = mixedWays(lanes);
  int32_t number = 0;
  for (const WaysById &found : it->second) {
    Ways ways(setting.likes.size(), -1);
    for (size_t op = 0; op < ways.size(); ++op) {
      auto way =
          found.find(setting.replica.original[setting.replica.first[op]]);
      if (way != found.end())
        ways[op] = way->second;
    }
    add(of, fmt::format("mixed {}", ++number), ways, lanes);
  }
}

std::vector<Proposer::WaysById> Proposer::mixedWays(int32_t lanes) const {
  int32_t parts = std::max(numParts(problem.graph), 1);
  ReplicaGraph one = replicaGraph(problem.graph, alternatives, parts);
  for (auto &of : one.alternatives.of)
    for (Alternative &way : of)
      way.exchange = (way.exchange + parts - 1) / parts;
  // The stage may lie on any devices.
  for (Operator &op : one.graph.ops)
    op.pin.reset();
  Problem stage{one.graph, replicaMachine(problem.machine, {1, lanes})};
  cuts::CutProgram program(stage, one.alternatives, Objective::Makespan);
  std::vector<WaysById> found;
  std::set<Ways> seen;
  for (double transfers : {1.0, 0.5, 0.25, 2.0}) {
    cuts::Weights weights;
    weights.transfers = transfers;
    weights.pieces = lanes;
    auto ways = program.propose(weights);
    if (!ways || !seen.insert(*ways).second)
      continue;
    auto &byId = found.emplace_back();
    for (size_t op = 0; op < ways->size(); ++op)
      byId[one.original[op]] = (*ways)[op];
  }
  return found;
}

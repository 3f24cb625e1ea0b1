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

std::vector<Proposal>
Proposer::run(std::vector<std::unique_ptr<Setting>> &settings,
              std::set<std::string> &notes) {
  addSettings(settings, notes);
  for (auto &setting : settings)
    propose(*setting);
  return std::move(proposals);
}

/// Replicas of equal parts of a node, and of whole nodes.
void Proposer::addSettings(std::vector<std::unique_ptr<Setting>> &settings,
                           std::set<std::string> &notes) const {
  int32_t all = nodes.nodes * nodes.devicesPerNode;
  int32_t parts = std::max(numParts(problem.graph), 1);
  for (int32_t devices = 1; devices <= all; ++devices) {
    bool isPart = nodes.devicesPerNode % devices == 0;
    bool isWhole = devices % nodes.devicesPerNode == 0 && all % devices == 0;
    if (!isPart && !isWhole)
      continue;
    int32_t replicas = std::min(parts, all / devices);
    while (parts % replicas != 0)
      --replicas;
    ReplicaShape shape{replicas, devices};
    if (std::string why = whyNoReplicas(problem, alternatives, shape);
        !why.empty()) {
      if (replicas > 1)
        notes.insert("no replicas: " + why);
      shape.replicas = 1;
    }
    settings.push_back(std::make_unique<Setting>(problem, alternatives, shape));
  }
}

void Proposer::propose(Setting &setting) {
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
    add(setting, name.empty() ? "whole" : name, setting.waysNamed(name), lanes);
    if (lanes > 1 && lanesSeen.insert(lanes).second && mixes)
      addMixed(setting, lanes);
  }
}

/// In as many stages as there are devices for.
void Proposer::add(Setting &setting, const std::string &name, const Ways &ways,
                   int32_t lanes) {
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
    Proposal each{&setting, {lanes, std::move(cuts), ways}, "", 0, never,
                  false};
    each.name = nameOf(each, name);
    each.bound = setting.lowerBound(each.layout);
    proposals.push_back(std::move(each));
  }
}

/// Ways by the pairwise program: of one part, on the devices of a stage.
void Proposer::addMixed(Setting &setting, int32_t lanes) {
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
    add(setting, fmt::format("mixed {}", ++number), ways, lanes);
  }
}

std::vector<Proposer::WaysById> Proposer::mixedWays(int32_t lanes) const {
  int32_t parts = std::max(numParts(problem.graph), 1);
  ReplicaGraph one = replicaGraph(problem.graph, alternatives, parts);
  for (auto &of : one.alternatives.of)
    for (Alternative &way : of)
      way.exchange = (way.exchange + parts - 1) / parts;
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

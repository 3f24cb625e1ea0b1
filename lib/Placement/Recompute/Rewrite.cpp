//===- Rewrite.cpp - Rewrites for memory as graphs ------------------------===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Baechi/Placement/Recompute/Rewrite.h"
#include "Baechi/Placement/Model/Pool.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

using namespace baechi::placement;

Graph baechi::placement::withRepeats(const Graph &graph,
                                     std::span<const int32_t> runs) {
  Graph rewritten;
  std::vector<std::vector<const Edge *>> into(graph.ops.size());
  for (const Edge &edge : graph.edges)
    into[edge.to].push_back(&edge);
  std::vector<std::vector<int32_t>> runsOf(graph.ops.size());
  for (int32_t op : runs) {
    auto run = static_cast<int32_t>(rewritten.ops.size());
    rewritten.ops.push_back(graph.ops[op]);
    Operator &copy = rewritten.ops.back();
    copy.forward.reset();
    if (!runsOf[op].empty()) {
      copy.resident = 0;
      copy.name += "#" + std::to_string(runsOf[op].size());
      // What its last run makes is what stays.
      rewritten.ops[runsOf[op].back()].result = false;
    }
    for (const Edge *edge : into[op])
      if (edge->output >= 0)
        rewritten.edges.push_back(
            {runsOf[edge->from].back(), edge->output, run});
      else
        for (int32_t before : runsOf[edge->from])
          rewritten.edges.push_back({before, -1, run});
    runsOf[op].push_back(run);
  }
  return rewritten;
}

RecomputeOptions baechi::placement::repeatsOf(const Graph &graph,
                                              const std::string &kind) {
  RecomputeOptions options{kind, {}};
  std::vector<uint8_t> reads(graph.ops.size(), 0);
  for (const Edge &edge : graph.edges)
    if (edge.output >= 0)
      reads[edge.to] = 1;
  std::set<std::string> withResident;
  for (const Operator &op : graph.ops)
    if (op.resident > 0 && op.group)
      withResident.insert(*op.group);
  for (size_t id = 0; id < graph.ops.size(); ++id) {
    const Operator &op = graph.ops[id];
    bool makesItsOwn =
        std::all_of(op.outputs.begin(), op.outputs.end(), [](const Output &o) {
          return o.memory > 0 || o.bytes == 0;
        });
    options.mayRepeat.push_back(reads[id] && op.resident == 0 && makesItsOwn &&
                                !(op.group && withResident.count(*op.group)));
  }
  return options;
}

SpillOptions baechi::placement::spillsOf(const Graph &graph,
                                         const std::string &kind,
                                         const Link &out, const Link &in,
                                         LinkModel model) {
  SpillOptions options;
  options.kind = kind;
  options.out = out;
  options.in = in;
  options.isShared = model == LinkModel::Sequential;
  options.smallStates = 50'000;
  options.mayMove.assign(graph.ops.size(), 0);
  options.nextValue.assign(graph.ops.size(), {});
  for (const Operator &op : graph.ops)
    options.staysHere.push_back(op.result);
  return options;
}

PlacedFit baechi::placement::placed(const Graph &graph, const SpillPlan &plan,
                                    const Machine &deviceAndPool) {
  PlacedFit fit{{graph, deviceAndPool}, {}};
  Graph &written = fit.problem.graph;
  Placement &placement = fit.placement;
  for (Operator &op : written.ops)
    op.pin.reset();
  placement.device.assign(graph.ops.size(), 0);
  placement.startNs = plan.startNs;
  placement.makespanNs = plan.makespanNs;
  std::vector<int32_t> at(graph.ops.size());
  for (size_t p = 0; p < plan.order.size(); ++p)
    at[plan.order[p]] = static_cast<int32_t>(p);
  // What uses from which position on read.
  std::map<std::pair<int32_t, int32_t>,
           std::vector<std::pair<int32_t, TensorName>>>
      versions;
  TensorName before, latest;
  for (const Stay &stay : plan.stays) {
    TensorName name = stay.tensor;
    if (!(name == before))
      latest = before = name;
    if (stay.outStartNs >= 0)
      placement.transfers.push_back(
          {name.op, name.output, 0, 1, stay.outStartNs, stay.outEndNs});
    if (stay.stashStartNs >= 0) {
      const Output &tensor = graph.ops[name.op].outputs[name.output];
      Operator stash;
      stash.name = written.ops[name.op].name + "@pool";
      stash.timeNs = {{deviceAndPool.devices[1].kind, stay.stashNs}};
      stash.outputs = {Output(tensor.bytes, tensor.copy, tensor.copy)};
      auto id = static_cast<int32_t>(written.ops.size());
      written.ops.push_back(std::move(stash));
      written.edges.push_back({latest.op, latest.output, id});
      placement.device.push_back(1);
      placement.startNs.push_back(stay.stashStartNs);
      latest = {id, 0};
    }
    if (stay.use < 0)
      continue;
    placement.transfers.push_back(
        {latest.op, latest.output, 1, 0, stay.inStartNs, stay.inEndNs});
    versions[{name.op, name.output}].emplace_back(stay.use, latest);
  }
  for (Edge &edge : written.edges) {
    auto found = versions.find({edge.from, edge.output});
    if (found == versions.end() ||
        edge.to >= static_cast<int32_t>(graph.ops.size()))
      continue;
    for (auto [use, name] : found->second)
      if (use <= at[edge.to])
        edge = {name.op, name.output, edge.to};
  }
  std::stable_sort(placement.transfers.begin(), placement.transfers.end(),
                   [](const Transfer &a, const Transfer &b) {
                     return a.startNs < b.startNs;
                   });
  return fit;
}

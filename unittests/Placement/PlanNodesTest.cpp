//===- PlanNodesTest.cpp - Plans for machines of nodes --------------------===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Baechi/Placement/Nodes/PlanNodes.h"
#include "Baechi/Placement/Model/Nodes.h"
#include "Nodes/Layout.h"
#include "TestProblems.h"

#include "gmock/gmock.h"

#include <bit>
#include <map>

using namespace baechi::placement;
using namespace baechi::placement::test;
using testing::HasSubstr;
using testing::IsEmpty;

namespace {

Machine machineOf(int32_t nodes, int32_t devices,
                  LinkModel model = LinkModel::Duplex, int32_t cards = 1) {
  return machineOfNodes({nodes, devices, cards, "gpu", int64_t(1) << 40,
                         Link{10, 100000}, Link{50, 10000}},
                        model);
}

struct Training {
  Problem problem;
  Alternatives alternatives;
};

/// Layers of a parameter, a forward, a backward operator of each part, and an
/// update; all in two pieces, too, by rows.
Training training(int32_t layers, int32_t parts, Machine machine,
                  int64_t exchange = 64000) {
  Training made;
  made.problem.machine = std::move(machine);
  auto &ops = made.problem.graph.ops;
  auto &edges = made.problem.graph.edges;
  auto add = [&](Operator op, bool isCut, bool hasReplicas) {
    Alternative way;
    way.name = "data/2";
    way.pieces.assign(2,
                      {{{"", op.timeNs[0].second / 2 + 20}}, 0, op.resident});
    made.alternatives.shapes.emplace_back(op.outputs.size(),
                                          std::vector<int64_t>{8, 1});
    for (size_t o = 0; o < op.outputs.size() && isCut; ++o)
      way.outputs.push_back({{0, {}}, false, 0});
    if (isCut)
      for (OutputCut &cut : way.outputs)
        cut.cut.sizes = {4, 4};
    if (hasReplicas) {
      way.replicas = 2;
      way.exchange = op.exchange;
    }
    ops.push_back(std::move(op));
    made.alternatives.of.push_back({std::move(way)});
    return static_cast<int32_t>(ops.size()) - 1;
  };
  auto read = [&](int32_t from, int32_t output, int32_t to, bool isCut) {
    edges.push_back({from, output, to});
    if (isCut)
      made.alternatives.of[to][0].inputs.push_back(
          {from, output, {0, {4, 4}}, 0});
  };
  std::vector<int32_t> weights;
  std::vector<std::vector<int32_t>> gradients(layers);
  for (int32_t l = 0; l < layers; ++l) {
    Operator weight = makeOp("w" + std::to_string(l), 0, {4000});
    weight.resident = 100;
    weight.group = "g" + std::to_string(l);
    weights.push_back(add(weight, false, false));
  }
  for (int32_t p = 0; p < parts; ++p) {
    std::vector<int32_t> forward;
    for (int32_t l = 0; l < layers; ++l) {
      Operator op = makeOp("p" + std::to_string(p) + "f" + std::to_string(l),
                           1000 + 200 * l, {8000});
      op.part = p;
      forward.push_back(add(op, true, false));
      read(weights[l], 0, forward.back(), false);
      if (l > 0)
        read(forward[l - 1], 0, forward[l], true);
    }
    int32_t after = -1;
    for (int32_t l = layers; l-- > 0;) {
      Operator op = makeOp("p" + std::to_string(p) + "b" + std::to_string(l),
                           2000 + 300 * l, {8000, 64});
      op.part = p;
      op.backward = true;
      op.forward = forward[l];
      int32_t id = add(op, true, false);
      read(weights[l], 0, id, false);
      read(forward[l], 0, id, true);
      if (after >= 0)
        read(after, 0, id, true);
      after = id;
      gradients[l].push_back(id);
    }
  }
  for (int32_t l = 0; l < layers; ++l) {
    Operator update = makeOp("u" + std::to_string(l), 300, {});
    update.group = "g" + std::to_string(l);
    update.backward = true;
    update.exchange = exchange;
    int32_t id = add(update, false, true);
    for (int32_t gradient : gradients[l])
      read(gradient, 1, id, true);
  }
  return made;
}

/// All replicas of a plan, message by message: what one stands for.
struct Lifted {
  Problem problem;
  Placement placement;
};

Lifted lift(const Problem &whole, const NodePlan &plan) {
  const Problem &one = plan.problem;
  const Placement &placed = *plan.result.placement;
  auto n = static_cast<int32_t>(one.graph.ops.size());
  int32_t replicas = plan.shape.replicas, q = plan.shape.devices;
  Lifted all{{{}, whole.machine}, {}};
  all.placement.makespanNs = placed.makespanNs;
  auto deviceOf = [&](int32_t r, int32_t d) { return r * q + d; };
  auto add = [&](Operator op, int32_t device, int64_t start) {
    all.problem.graph.ops.push_back(std::move(op));
    all.placement.device.push_back(device);
    all.placement.startNs.push_back(start);
    return static_cast<int32_t>(all.problem.graph.ops.size()) - 1;
  };
  auto &edges = all.problem.graph.edges;
  // What the exchanges of one replica are to others is below.
  std::vector<std::vector<int32_t>> id(replicas, std::vector<int32_t>(n, -1));
  for (int32_t r = 0; r < replicas; ++r)
    for (int32_t i = 0; i < n; ++i)
      if (placed.device[i] < q) {
        Operator op = one.graph.ops[i];
        op.name += "@" + std::to_string(r);
        if (op.group)
          *op.group += "@" + std::to_string(r);
        op.forward.reset();
        id[r][i] = add(op, deviceOf(r, placed.device[i]), placed.startNs[i]);
      }
  std::map<int32_t, std::vector<int32_t>> last; // of each exchange, by replica
  for (const Transfer &t : placed.transfers) {
    if (t.to < q) {
      for (int32_t r = 0; r < replicas; ++r)
        all.placement.transfers.push_back(
            {id[r][t.op], t.output, deviceOf(r, t.from), deviceOf(r, t.to),
             t.startNs, t.endNs});
      continue;
    }
    int32_t exchange = -1;
    for (const Edge &edge : one.graph.edges)
      if (edge.from == t.op && edge.output == t.output)
        exchange = edge.to;
    int64_t bytes = one.graph.ops[t.op].outputs[t.output].bytes;
    int64_t share = bytes / (2 * (replicas - 1));
    bool isHalving = q % shapeOf(whole.machine).devicesPerNode == 0 &&
                     std::has_single_bit(static_cast<uint32_t>(replicas));
    std::vector<std::pair<int64_t, int32_t>> messages; // bytes, xor or 0: next
    if (isHalving) {
      for (int32_t half = replicas / 2; half >= 1; half /= 2)
        messages.emplace_back(share * half, half);
      for (int32_t half = 1; half <= replicas / 2; half *= 2)
        messages.emplace_back(share * half, half);
    } else {
      messages.assign(2 * (replicas - 1), {share, 0});
    }
    std::vector<int32_t> from;
    for (int32_t r = 0; r < replicas; ++r)
      from.push_back(id[r][t.op]);
    int64_t now = t.startNs;
    for (auto [size, half] : messages) {
      const Nodes &nodes = *whole.machine.nodes;
      bool isInside = replicas * q <= shapeOf(whole.machine).devicesPerNode;
      const Link &link = isInside ? *nodes.inside : *nodes.between;
      int64_t end = now + link.transferNs(size);
      std::vector<int32_t> next(replicas);
      for (int32_t r = 0; r < replicas; ++r)
        next[r] = add(
            makeOp("x" + std::to_string(all.placement.device.size()), 0, {}),
            deviceOf(r, t.from), end);
      for (int32_t r = 0; r < replicas; ++r) {
        int32_t to = half ? r ^ half : (r + 1) % replicas;
        auto &outputs = all.problem.graph.ops[from[r]].outputs;
        auto output = static_cast<int32_t>(outputs.size());
        outputs.emplace_back(size, 0, 0);
        edges.push_back({from[r], output, next[to]});
        edges.push_back({from[r], -1, next[r]});
        all.placement.transfers.push_back({from[r], output, deviceOf(r, t.from),
                                           deviceOf(to, t.from), now, end});
      }
      from = next;
      now = end;
    }
    EXPECT_EQ(now, t.endNs);
    last[exchange] = from;
  }
  for (const Edge &edge : one.graph.edges)
    for (int32_t r = 0; r < replicas; ++r)
      if (placed.device[edge.to] < q)
        edges.push_back(
            placed.device[edge.from] < q
                ? Edge{id[r][edge.from], edge.output, id[r][edge.to]}
                : Edge{last[edge.from][r], -1, id[r][edge.to]});
  std::stable_sort(all.placement.transfers.begin(),
                   all.placement.transfers.end(),
                   [](const Transfer &a, const Transfer &b) {
                     return a.startNs < b.startNs;
                   });
  return all;
}

/// Places a grid and checks one replica, and all of them.
int64_t checkGrid(const Training &of, const Grid &grid) {
  NodePlan plan = placeGrid(of.problem, of.alternatives, grid);
  EXPECT_TRUE(plan.result.placement) << plan.result.error;
  if (!plan.result.placement)
    return -1;
  EXPECT_THAT(verify(plan.problem, *plan.result.placement), IsEmpty());
  Lifted all = lift(of.problem, plan);
  EXPECT_THAT(check(all.problem), IsEmpty());
  EXPECT_THAT(verify(all.problem, all.placement), IsEmpty())
      << grid.way << ":" << grid.stages << ":" << grid.replicas;
  return plan.result.placement->makespanNs;
}

} // namespace

TEST(PlanNodes, OneReplicaStandsForAll) {
  for (LinkModel model : {LinkModel::Duplex, LinkModel::Parallel})
    for (int32_t cards : {1, 2})
      for (const Grid &grid : {Grid{"", 1, 8},
                               {"", 2, 4},
                               {"", 4, 2},
                               {"data/2", 1, 4},
                               {"data/2", 2, 2},
                               {"data/2", 4, 1},
                               {"", 8, 1},
                               {"", 2, 1},
                               {"", 1, 2},
                               {"data/2", 1, 2}}) {
        if (cards > 1 && grid.way.empty() && grid.stages == 1)
          continue; // One device a replica: cards would not be shared alike.
        checkGrid(training(4, 8, machineOf(4, 2, model, cards)), grid);
      }
  // A ring of three, on whole nodes.
  checkGrid(training(2, 6, machineOf(3, 2)), {"data/2", 1, 3});
  checkGrid(training(2, 6, machineOf(3, 2)), {"", 2, 3});
}

TEST(PlanNodes, ExchangeTakesWhatTheFormulaSays) {
  // Two replicas on two nodes of one device: a layer forward, backward, its
  // update, then halves there and back: 2 * (50 + 32000 / 10).
  Training of = training(1, 2, machineOf(2, 1));
  EXPECT_EQ(checkGrid(of, {"", 1, 2}), 1000 + 2000 + 300 + 2 * (50 + 3200));
}

TEST(PlanNodes, NoGridIsFaster) {
  for (int32_t nodes : {2, 4})
    for (int64_t exchange : {100, 64000, 10'000'000}) {
      Training of = training(4, 8, machineOf(nodes, 2), exchange);
      PlaceOptions options;
      options.budget = Budget::ofEvaluations(50);
      NodePlan plan = planNodes(of.problem, of.alternatives, options);
      ASSERT_TRUE(plan.result.placement) << plan.result.error;
      int64_t planned = plan.result.placement->makespanNs;
      EXPECT_GE(planned, plan.result.lowerBoundNs);
      for (const char *way : {"", "data/2"})
        for (int32_t stages : {1, 2, 4, 8})
          for (int32_t replicas : {1, 2, 4, 8}) {
            int32_t lanes = *way ? 2 : 1;
            if (lanes * stages * replicas > nodes * 2 || stages > 4)
              continue;
            EXPECT_LE(planned, checkGrid(of, {way, stages, replicas}))
                << way << ":" << stages << ":" << replicas;
          }
    }
}

TEST(PlanNodes, MoreNodesAreNoSlower) {
  // With much to exchange few devices are best, with little all. Machines of up
  // to four devices are searched as one, too.
  for (int64_t exchange : {100, 64000, 10'000'000}) {
    int64_t before = never;
    for (int32_t nodes : {3, 4, 5, 6, 7, 8, 16, 24}) {
      Training of = training(3, 8, machineOf(nodes, 2), exchange);
      PlaceOptions options;
      options.budget = Budget::ofEvaluations(50);
      NodePlan plan = planNodes(of.problem, of.alternatives, options);
      ASSERT_TRUE(plan.result.placement) << plan.result.error;
      EXPECT_EQ(plan.skipped, 0);
      EXPECT_LE(plan.result.placement->makespanNs, before)
          << nodes << " nodes, " << exchange << " bytes";
      before = plan.result.placement->makespanNs;
    }
  }
}

TEST(PlanNodes, ReplicasInOneNodeExchangeInside) {
  // As the first test of the formula, on one of two nodes of two devices.
  Training of = training(1, 2, machineOf(2, 2));
  EXPECT_EQ(checkGrid(of, {"", 1, 2}), 1000 + 2000 + 300 + 2 * (10 + 320));
}

TEST(PlanNodes, LooksForPlansOnFewerDevices) {
  // Eight devices would exchange for longer than one of them computes.
  Training of = training(3, 8, machineOf(4, 2), 1'000'000'000);
  NodePlan plan = planNodes(of.problem, of.alternatives, {});
  ASSERT_TRUE(plan.result.placement) << plan.result.error;
  EXPECT_EQ(plan.shape.replicas, 1);
  nodes::Setting setting(of.problem, of.alternatives, {1, 1});
  nodes::Layout one{1, {0}, Ways(setting.likes.size(), -1)};
  EXPECT_LE(plan.result.placement->makespanNs, setting.evaluate(one, never));
}

TEST(PlanNodes, IsNearTheBestOfAllLayouts) {
  for (int64_t exchange : {100, 20000, 1'000'000}) {
    Training of = training(2, 4, machineOf(2, 2), exchange);
    int64_t best = never;
    for (ReplicaShape shape : {ReplicaShape{4, 1}, {2, 2}, {1, 4}}) {
      nodes::Setting setting(of.problem, of.alternatives, shape);
      std::vector<int32_t> firsts;
      for (size_t op = 0; op < setting.likes.size(); ++op)
        if (setting.likes[op] > 0)
          firsts.push_back(static_cast<int32_t>(op));
      for (int32_t lanes : {1, 2})
        for (int32_t cut = 0; cut < setting.chain.numLinks; ++cut)
          for (uint32_t code = 0; code < 1u << firsts.size(); ++code) {
            int32_t stages = cut ? 2 : 1;
            if (lanes * stages > shape.devices || (lanes == 1 && code > 0))
              continue;
            nodes::Layout layout{lanes, {0}, Ways(setting.likes.size(), -1)};
            if (cut)
              layout.cuts.push_back(cut);
            for (size_t k = 0; k < firsts.size(); ++k)
              setting.setWay(layout.ways, firsts[k],
                             static_cast<int32_t>(code >> k & 1) - 1);
            int64_t bound = setting.lowerBound(layout);
            int64_t ns = setting.evaluate(layout, best);
            if (ns == never)
              continue;
            EXPECT_LE(bound, ns);
            best = std::min(best, ns);
          }
    }
    NodePlan plan = planNodes(of.problem, of.alternatives, {});
    ASSERT_TRUE(plan.result.placement) << plan.result.error;
    EXPECT_LE(plan.result.placement->makespanNs, best + best / 50);
  }
}

TEST(PlanNodes, SaysWhyThereAreNoReplicas) {
  auto why = [](Training of) {
    return whyNoReplicas(of.problem, of.alternatives, {2, 2});
  };
  Training good = training(2, 4, machineOf(2, 2)), bad = good;
  EXPECT_EQ(why(good), "");
  EXPECT_THAT(whyNoReplicas(good.problem, good.alternatives, {3, 2}),
              HasSubstr("3 replicas of 2 devices do not fit 4 devices"));
  EXPECT_THAT(whyNoReplicas(good.problem, good.alternatives, {1, 3}),
              HasSubstr("neither an equal part of a node of 2"));
  EXPECT_THAT(why(training(2, 3, machineOf(2, 2))),
              HasSubstr("3 parts of the batch cannot be shared"));
  bad.problem.graph.ops.back().exchange = 0;
  EXPECT_THAT(why(bad), HasSubstr("states no \"exchange\""));
  bad = good;
  bad.problem.graph.ops[6].timeNs[0].second += 1;
  EXPECT_THAT(why(bad), HasSubstr("are not alike"));
  bad = good;
  bad.problem.graph.ops[2].pin = "n0.gpu0";
  EXPECT_THAT(why(bad), HasSubstr("is pinned to a device"));
  bad = good;
  bad.problem.graph.edges.push_back({2, 0, 6});
  EXPECT_THAT(why(bad), HasSubstr("of another part of the batch"));
  bad = good;
  bad.problem.graph.edges.pop_back();
  EXPECT_THAT(why(bad), HasSubstr("read otherwise"));
  bad = good;
  for (Operator &op : bad.problem.graph.ops)
    op.part.reset();
  EXPECT_THAT(why(bad), HasSubstr("of which \"part\""));
  // It is planned all the same, as one.
  NodePlan plan = planNodes(bad.problem, bad.alternatives, {});
  ASSERT_TRUE(plan.result.placement) << plan.result.error;
  EXPECT_EQ(plan.shape.replicas, 1);
}

TEST(PlanNodes, PinsAreReached) {
  Training one = training(2, 4, machineOf(2, 2));
  one.problem.graph.ops[2].pin = "n1.gpu0";
  EXPECT_THAT(whyNoReplicas(one.problem, one.alternatives, {1, 2}),
              HasSubstr("pinned to the first 3 devices, of which 2 are used"));
  NodePlan plan = planNodes(one.problem, one.alternatives, {});
  ASSERT_TRUE(plan.result.placement) << plan.result.error;
  EXPECT_EQ(plan.shape.replicas, 1);
  EXPECT_GE(plan.shape.devices, 3);
}

TEST(PlanNodes, GridsAreReadOrRefused) {
  Grid grid;
  EXPECT_EQ(parseGrid("tensor/8:4:2", grid), "");
  EXPECT_EQ(grid.way, "tensor/8");
  EXPECT_EQ(grid.stages, 4);
  EXPECT_EQ(grid.replicas, 2);
  EXPECT_EQ(parseGrid("whole:1:8", grid), "");
  EXPECT_EQ(grid.way, "");
  for (const char *text : {"", ":", "a:1", "a:0:1", "a:1:x", "a:1:5000"})
    EXPECT_THAT(parseGrid(text, grid), HasSubstr("is no grid")) << text;
  Training of = training(2, 4, machineOf(2, 2));
  EXPECT_THAT(
      placeGrid(of.problem, of.alternatives, {"rows", 1, 1}).result.error,
      HasSubstr("no operator has an alternative 'rows'"));
}

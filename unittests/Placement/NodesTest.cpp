//===- NodesTest.cpp - Machines of nodes with shared network cards --------===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Baechi/Placement/Model/Nodes.h"
#include "Baechi/Placement/Io/Files.h"
#include "Baechi/Placement/Schedule/Verify.h"
#include "Baechi/Placement/Session/ExactPlacement.h"
#include "Baechi/Placement/Session/Place.h"
#include "Baechi/Placement/Study/Sweep.h"
#include "Memory/Memory.h"
#include "Schedule/Evaluator.h"
#include "TestProblems.h"

#include "gmock/gmock.h"

using namespace baechi::placement;
using namespace baechi::placement::test;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

namespace {

NodeShape shape(int32_t nodes, int32_t devices, int32_t cards = 1) {
  return {nodes,           devices,        cards, "gpu", int64_t(1) << 40,
          Link{10, 10000}, Link{100, 1000}};
}

/// `senders` operators on the devices of the first node, each read by one on
/// the device of the same number of the second.
Problem crossing(int32_t senders, int32_t cards, LinkModel model) {
  Problem problem;
  problem.machine = machineOfNodes(shape(2, senders, cards), model);
  for (int32_t i = 0; i < senders; ++i)
    problem.graph.ops.push_back(makeOp("from" + std::to_string(i), 50, {900}));
  for (int32_t i = 0; i < senders; ++i) {
    problem.graph.ops.push_back(makeOp("to" + std::to_string(i), 7, {}));
    problem.graph.edges.push_back({i, 0, senders + i});
  }
  return problem;
}

/// The schedule of operators on these devices, by all that make schedules: they
/// must agree, and what replays placements must accept it.
int64_t scheduled(const Problem &problem, const Assignment &device) {
  EXPECT_THAT(check(problem), IsEmpty());
  Model model(problem);
  Schedule schedule, again;
  Scheduler scheduler(model);
  scheduler.run(device, {}, &schedule);
  EXPECT_EQ(Evaluator(model).run(device, {}, never, &again), schedule.makespan);
  EXPECT_EQ(again.start, schedule.start);
  EXPECT_THAT(verify(problem, toPlacement(model, device, schedule)), IsEmpty());
  return schedule.makespan;
}

std::string machineError(const std::string &rest) {
  Machine machine;
  return parseMachine(
      R"({"format": "baechi-machine", "version": 1, "link_model": "duplex", )" +
          rest + "}",
      "m.json", machine);
}

const char *const inside = R"("device": {"kind": "cuda", "memory": 1024},
    "inside": {"latency_ns": 2, "bytes_per_us": 300000})";

} // namespace

TEST(Nodes, FileMakesDevicesAndLinks) {
  std::string text = R"({"format": "baechi-machine", "version": 1,
    "nodes": 3, "devices_per_node": 2, )" +
                     std::string(inside) + R"(,
    "between": {"latency_ns": 5, "bytes_per_us": 25000},
    "link_model": "duplex"})";
  Machine machine, again;
  ASSERT_EQ(parseMachine(text, "m.json", machine), "");
  ASSERT_EQ(machine.devices.size(), 6u);
  EXPECT_EQ(machine.devices[3].name, "n1.cuda1");
  EXPECT_EQ(machine.link(2, 3)->bytesPerUs, 300000);
  EXPECT_EQ(machine.link(1, 2)->bytesPerUs, 25000);
  EXPECT_THAT(machine.nodes->card, ElementsAre(0, 0, 1, 1, 2, 2));
  ASSERT_EQ(formatMachine(machine, text), "");
  ASSERT_EQ(parseMachine(text, "m.json", again), "");
  EXPECT_EQ(again.nodes->card, machine.nodes->card);
  EXPECT_EQ(again.nodes->node, machine.nodes->node);
  EXPECT_EQ(*again.link(0, 5), *machine.link(0, 5));
  EXPECT_TRUE(again.links.empty());
}

TEST(Nodes, FileErrorsNameThePlace) {
  std::string rest = ", " + std::string(inside);
  auto nodes = [&](const char *count, const char *each, const char *between) {
    return machineError(std::string("\"nodes\": ") + count +
                        ", \"devices_per_node\": " + each + between + rest);
  };
  const char *network =
      R"(, "between": {"latency_ns": 5, "bytes_per_us": 25000})";
  EXPECT_EQ(nodes("1", "2", ""), "");
  EXPECT_THAT(nodes("2", "2", ""), HasSubstr("between"));
  EXPECT_THAT(nodes("0", "2", network),
              HasSubstr("nodes: is 0, but must be from 1 to 4096"));
  EXPECT_THAT(nodes("2", "0", network),
              HasSubstr("devices_per_node: is 0, but must be from 1 to 2048"));
  EXPECT_THAT(nodes("2000000000", "2000000000", network),
              HasSubstr("must be from 1 to 4096"));
  EXPECT_THAT(nodes("4096", "2", network), HasSubstr("must be from 1 to 1"));
  EXPECT_THAT(nodes("2", "2",
                    R"(, "between": {"latency_ns": 5, "bytes_per_us": 25000,
                         "cards_per_node": 3})"),
              HasSubstr("cards_per_node: is 3, but must be from 1 to 2"));
  EXPECT_THAT(nodes("2", "2",
                    R"(, "between": {"latency_ns": 5, "bytes_per_us": 25000,
                         "lends": true})"),
              HasSubstr("lends"));
  EXPECT_THAT(machineError(
                  R"("nodes": 1, "devices_per_node": 1, "devices": [])" + rest),
              HasSubstr("devices: stands beside \"nodes\""));
  EXPECT_THAT(machineError(R"("devices": [])" + rest),
              HasSubstr("device: is of machines of nodes"));
  Problem slow = crossing(2, 1, LinkModel::Duplex);
  slow.machine.nodes->between->bytesPerUs = 0;
  EXPECT_THAT(check(slow), ElementsAre(HasSubstr("the link between nodes moves "
                                                 "0 bytes per us")));
  Problem far = crossing(2, 1, LinkModel::Duplex);
  far.machine.nodes->between->latencyNs = int64_t{1} << 62;
  EXPECT_THAT(check(far),
              ElementsAre(HasSubstr("operators and transfers add up")));
  EXPECT_THAT(machineError(R"("nodes": 1, "devices_per_node": 1,
                  "device": {"kind": "", "memory": 8},
                  "inside": {"latency_ns": 2, "bytes_per_us": 3})"),
              HasSubstr("kind: is empty: name a kind of device"));
}

TEST(Nodes, CardsCarryOneTransferAtATime) {
  // 50, then 100 + 900 for each transfer over a card, then 7.
  EXPECT_EQ(scheduled(crossing(2, 1, LinkModel::Duplex), {0, 1, 2, 3}), 2057);
  EXPECT_EQ(scheduled(crossing(2, 2, LinkModel::Duplex), {0, 1, 2, 3}), 1057);
  EXPECT_EQ(scheduled(crossing(2, 1, LinkModel::Parallel), {0, 1, 2, 3}), 2057);
  EXPECT_EQ(scheduled(crossing(2, 1, LinkModel::Unlimited), {0, 1, 2, 3}),
            1057);
  // Inside a node no card is used: 10 + 90.
  EXPECT_EQ(scheduled(crossing(2, 1, LinkModel::Parallel), {0, 1, 1, 0}), 157);
  // One out and one in at a time, but where a card has one side.
  EXPECT_EQ(scheduled(crossing(2, 1, LinkModel::Duplex), {0, 3, 2, 1}), 1057);
  EXPECT_EQ(scheduled(crossing(2, 1, LinkModel::Sequential), {0, 3, 2, 1}),
            2057);
}

TEST(Nodes, ReplayFindsTwoTransfersOnACard) {
  Problem problem = crossing(2, 1, LinkModel::Duplex);
  Problem free = problem;
  free.machine.linkModel = LinkModel::Unlimited;
  Model model(free);
  Assignment device = {0, 1, 2, 3};
  Schedule schedule;
  Scheduler(model).run(device, {}, &schedule);
  EXPECT_THAT(
      verify(problem, toPlacement(model, device, schedule)),
      ElementsAre(HasSubstr("two at once on the incoming side of network card "
                            "1"),
                  HasSubstr("two at once on the outgoing side of network card "
                            "0")));
}

TEST(Nodes, PlansWithinMemoriesUseCardsToo) {
  Problem problem = crossing(4, 1, LinkModel::Duplex);
  Model model(problem);
  Assignment device = {0, 1, 2, 3, 4, 5, 6, 7};
  Scheduler scheduler(model);
  Schedule schedule;
  ASSERT_TRUE(memory::scheduleWithin(scheduler, model, device, schedule));
  EXPECT_THAT(verify(problem, toPlacement(model, device, schedule)), IsEmpty());
  EXPECT_EQ(schedule.makespan, 4057);
}

TEST(Nodes, SearchIsNearTheBestOfAllAssignments) {
  int32_t above = 0;
  for (uint32_t seed = 1; seed <= 20; ++seed) {
    Problem problem = randomProblem(seed);
    problem.graph.ops.resize(std::min<size_t>(problem.graph.ops.size(), 6));
    std::erase_if(problem.graph.edges, [&](const Edge &edge) {
      return edge.from >= std::ssize(problem.graph.ops) ||
             edge.to >= std::ssize(problem.graph.ops);
    });
    for (Operator &op : problem.graph.ops) {
      op.pin.reset();
      op.group.reset();
      op.forward.reset();
      op.timeNs.resize(1);
    }
    problem.machine = machineOfNodes(shape(2, 2), LinkModel::Duplex);
    auto n = static_cast<int32_t>(problem.graph.ops.size());
    Model model(problem);
    Evaluator evaluator(model);
    Assignment device(n, 0);
    int64_t best = never;
    for (int64_t code = 0; code < int64_t(1) << (2 * n); ++code) {
      for (int32_t i = 0; i < n; ++i)
        device[i] = static_cast<int32_t>(code >> (2 * i) & 3);
      best = std::min(best, evaluator.run(device, {}, never));
    }
    PlaceResult result = place(problem, {});
    ASSERT_TRUE(result.placement) << result.error;
    EXPECT_LE(result.placement->makespanNs, best + best / 20);
    above += result.placement->makespanNs > best;
    EXPECT_GE(result.placement->makespanNs, result.lowerBoundNs);
  }
  EXPECT_LE(above, 2);
}

TEST(Nodes, WhatKnowsNoCardsRefuses) {
  Problem problem = crossing(2, 1, LinkModel::Duplex);
  EXPECT_THAT(exactPlacement(problem, {}).error, HasSubstr("network cards"));
  PlaceOptions options;
  options.objective = Objective::MaxLoad;
  EXPECT_THAT(place(problem, options).error, HasSubstr("network cards"));
  EXPECT_THAT(sweep(problem, {}).error,
              HasSubstr("a machine of nodes cannot be swept over"));
}

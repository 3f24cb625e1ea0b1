//===- PeriodTest.cpp - The distance between steps that overlap -*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Schedule/Period.h"
#include "SmallProblems.h"
#include "TestProblems.h"

#include "Baechi/Placement/Cuts/PlanCuts.h"
#include "Baechi/Placement/Session/ExactPlacement.h"
#include "Baechi/Placement/Session/Place.h"
#include "Baechi/Placement/Study/Compare.h"
#include "Baechi/Placement/Study/Judge.h"
#include "Model/Random.h"

#include <gmock/gmock.h>

#include <map>

using namespace baechi::placement;
using namespace baechi::placement::test;
using testing::HasSubstr;
using testing::IsEmpty;

namespace {

/// Steps of a placement that overlap, one after the other, by the rules of
/// docs/placement.md alone: what happens waits for what the rules name.
class Unrolled {
public:
  Unrolled(const Problem &problem, const Placement &placement)
      : problem(problem), placement(placement), model(problem) {
    for (int32_t i = 0; i < model.numNodes; ++i)
      orders[placement.device[i]].push_back(i);
    // Where starts and ends are the same: by the longest path to each.
    std::vector<int32_t> depth(model.numNodes, 0);
    for (int32_t i : model.order)
      for (const Edge &edge : problem.graph.edges)
        if (edge.to == i)
          depth[i] = std::max(depth[i], depth[edge.from] + 1);
    auto timeOf = [&](int32_t i) {
      return model.timeOf(i, placement.device[i]);
    };
    for (auto &[device, list] : orders)
      std::sort(list.begin(), list.end(), [&](int32_t a, int32_t b) {
        return std::tuple(placement.startNs[a], timeOf(a), depth[a], a) <
               std::tuple(placement.startNs[b], timeOf(b), depth[b], b);
      });
    for (size_t k = 0; k < placement.transfers.size(); ++k)
      for (const std::string &link : linksOf(placement.transfers[k]))
        carried[link].push_back(k);
    begins.emplace_back(model.numDevices, 0);
  }

  /// When each device begins the step after \p steps.
  std::vector<int64_t> begin(int64_t steps) {
    while (static_cast<int64_t>(begins.size()) <= steps)
      next();
    return begins[steps];
  }

private:
  bool lends(const Transfer &each) const {
    return problem.machine.link(each.from, each.to)->lends;
  }
  std::vector<std::string> linksOf(const Transfer &each) const {
    auto from = std::to_string(each.from), to = std::to_string(each.to);
    switch (problem.machine.linkModel) {
    case LinkModel::Unlimited:
      return {};
    case LinkModel::Parallel:
      return {from + ">" + to};
    case LinkModel::Duplex:
      return {"out" + from, "in" + to};
    case LinkModel::Sequential:
      return {from, to};
    }
    return {};
  }

  int64_t operatorEnd(int32_t i) {
    if (auto known = ended.find(i); known != ended.end())
      return known->second;
    int32_t d = placement.device[i];
    int64_t at = begins.back()[d];
    const std::vector<int32_t> &order = orders[d];
    if (order.front() != i)
      at = operatorEnd(*std::prev(std::find(order.begin(), order.end(), i)));
    for (const Edge &edge : problem.graph.edges) {
      if (edge.to != i)
        continue;
      if (placement.device[edge.from] == d)
        at = std::max(at, operatorEnd(edge.from));
      else if (edge.output < 0)
        at = std::max(at, signalAt(edge.from, i));
      else
        at = std::max(at, transferEnd(arrivalOf(edge.from, edge.output, d)));
    }
    return ended[i] = at + model.timeOf(i, d);
  }
  int64_t signalAt(int32_t from, int32_t to) {
    int32_t a = placement.device[from], b = placement.device[to];
    return std::max(operatorEnd(from), begins.back()[b]) +
           problem.machine.link(a, b)->latencyNs;
  }
  size_t arrivalOf(int32_t op, int32_t output, int32_t device) const {
    for (size_t k = 0; k < placement.transfers.size(); ++k) {
      const Transfer &each = placement.transfers[k];
      if (each.op == op && each.output == output && each.to == device)
        return k;
    }
    ADD_FAILURE() << "a tensor does not arrive";
    return 0;
  }
  int64_t transferEnd(size_t k) {
    if (auto known = arrived.find(k); known != arrived.end())
      return known->second;
    const Transfer &each = placement.transfers[k];
    int64_t at = begins.back()[each.from];
    if (!lends(each))
      at = std::max(at, begins.back()[each.to]);
    at = std::max(
        at, placement.device[each.op] == each.from
                ? operatorEnd(each.op)
                : transferEnd(arrivalOf(each.op, each.output, each.from)));
    for (const std::string &link : linksOf(each)) {
      const std::vector<size_t> &list = carried[link];
      auto here = std::find(list.begin(), list.end(), k);
      at = std::max(at, here == list.begin() ? freed[link]
                                             : transferEnd(*std::prev(here)));
    }
    const Link &link = *problem.machine.link(each.from, each.to);
    return arrived[k] =
               at + link.transferNs(
                        problem.graph.ops[each.op].outputs[each.output].bytes);
  }
  /// When a lent tensor is given back.
  int64_t backAt(size_t k) {
    const Transfer &each = placement.transfers[k];
    int64_t at = transferEnd(k);
    for (const Edge &edge : problem.graph.edges)
      if (edge.from == each.op && edge.output == each.output &&
          placement.device[edge.to] == each.to)
        at = std::max(at, operatorEnd(edge.to));
    for (size_t other = 0; other < placement.transfers.size(); ++other)
      if (const Transfer &on = placement.transfers[other];
          on.op == each.op && on.output == each.output && on.from == each.to)
        at = std::max(at, lends(on) ? backAt(other) : transferEnd(other));
    return at;
  }

  void next() {
    std::vector<int64_t> then = begins.back();
    auto raise = [&](int32_t d, int64_t ns) {
      then[d] = std::max(then[d], ns);
    };
    for (int32_t i = 0; i < model.numNodes; ++i)
      raise(placement.device[i], operatorEnd(i));
    for (size_t k = 0; k < placement.transfers.size(); ++k) {
      const Transfer &each = placement.transfers[k];
      raise(each.from, lends(each) ? backAt(k) : transferEnd(k));
      raise(each.to, transferEnd(k));
    }
    for (const Edge &edge : problem.graph.edges)
      if (int32_t a = placement.device[edge.from],
          b = placement.device[edge.to];
          edge.output < 0 && a != b) {
        raise(a, signalAt(edge.from, edge.to));
        raise(b, signalAt(edge.from, edge.to));
      }
    for (auto &[link, list] : carried)
      freed[link] = transferEnd(list.back());
    ended.clear();
    arrived.clear();
    begins.push_back(std::move(then));
  }

  const Problem &problem;
  const Placement &placement;
  Model model;
  std::map<int32_t, std::vector<int32_t>> orders;
  std::map<std::string, std::vector<size_t>> carried;
  std::map<std::string, int64_t> freed;
  std::map<int32_t, int64_t> ended;  ///< operators of this step
  std::map<size_t, int64_t> arrived; ///< transfers of this step
  std::vector<std::vector<int64_t>> begins;
};

/// \p period against many unrolled steps.
void expectPeriod(const Problem &problem, const Placement &placement,
                  const Period &period) {
  Unrolled unrolled(problem, placement);
  // Longer than whatever comes before the distances repeat.
  constexpr int64_t many = 240;
  std::vector<int64_t> last = unrolled.begin(many + period.cycle),
                       before = unrolled.begin(many);
  int64_t longest = 0;
  for (size_t d = 0; d < last.size(); ++d)
    longest = std::max(longest, last[d] - before[d]);
  EXPECT_EQ(longest, period.cycleNs) << "in " << period.cycle << " steps";
}

Placement scheduled(const Model &model, const Assignment &device) {
  Schedule schedule;
  Scheduler(model).run(device, {}, &schedule);
  return toPlacement(model, device, schedule);
}

/// Every assignment that the problem allows.
template <typename Visit>
void forEachAssignment(const Model &model, Visit visit) {
  std::vector<int32_t> device(model.numUnits, 0);
  for (;;) {
    bool allowed = true;
    for (Unit u = 0; u < model.numUnits; ++u)
      allowed &= model.mayUse(u, device[u]);
    Assignment assignment(model.numNodes);
    for (int32_t i = 0; i < model.numNodes; ++i)
      assignment[i] = device[model.unit[i]];
    if (allowed)
      visit(assignment);
    Unit u = 0;
    while (u < model.numUnits && ++device[u] == model.numDevices)
      device[u++] = 0;
    if (u == model.numUnits)
      return;
  }
}

int64_t periodOf(const Problem &problem, const Assignment &device) {
  Model model(problem);
  Placement placement = scheduled(model, device);
  Period period = PeriodReplay(model).run(placement);
  expectPeriod(problem, placement, period);
  return period.ns();
}

/// Two stages of \p a and \p b ns with \p ns between them.
Problem stages(int64_t a, int64_t b, int64_t ns) {
  Problem problem;
  problem.machine = makeMachine(2, 1 << 20, {ns, 1000});
  problem.graph.ops = {makeOp("a", a, {0}), makeOp("b", b, {0})};
  problem.graph.edges = {{0, 0, 1}};
  return problem;
}

TEST(Period, TwoStagesByHand) {
  EXPECT_EQ(periodOf(stages(100, 60, 10), {0, 0}), 160);
  // A message goes when both are in its step: to compute, and to be sent.
  EXPECT_EQ(periodOf(stages(100, 60, 10), {0, 1}), 110);
  EXPECT_EQ(periodOf(stages(60, 100, 10), {0, 1}), 110);
  // What is lent is back when it has been read.
  Problem lending = stages(100, 60, 10);
  lending.machine.links[1]->lends = true;
  EXPECT_EQ(periodOf(lending, {0, 1}), 170);
}

TEST(Period, ARoundTripHidesNothing) {
  Problem problem = stages(100, 60, 10);
  problem.graph.ops[1].outputs = {Output(0)};
  problem.graph.ops.push_back(makeOp("c", 30));
  problem.graph.edges.push_back({1, 0, 2});
  EXPECT_EQ(periodOf(problem, {0, 1, 0}), 210);
}

TEST(Period, DevicesWithoutMessagesGoTheirOwnWays) {
  Problem problem = stages(100, 60, 10);
  problem.graph.edges.clear();
  EXPECT_EQ(periodOf(problem, {0, 1}), 100);
}

TEST(Period, IsThatOfManyUnrolledSteps) {
  int32_t uneven = 0;
  for (uint32_t seed = 0; seed < 300; ++seed) {
    Problem problem = randomProblem(seed);
    for (auto &link : problem.machine.links)
      if (seed % 3 == 0 && link)
        link->lends = true;
    Model model(problem);
    Random random(seed + 1);
    Assignment device(model.numNodes);
    for (int32_t i = 0; i < model.numNodes; ++i) {
      int32_t d = random.below(model.numDevices);
      while (!model.mayUse(model.unit[i], d))
        d = (d + 1) % model.numDevices;
      device[i] = d;
    }
    for (int32_t i = 0; i < model.numNodes; ++i)
      device[i] = device[model.members[model.unit[i]].front()];
    Placement placement = scheduled(model, device);
    if (placement.makespanNs == never)
      continue;
    Period period = PeriodReplay(model).run(placement);
    expectPeriod(problem, placement, period);
    EXPECT_LE(maxLoad(model, device), period.ns()) << seed;
    EXPECT_LE(period.ns(), placement.makespanNs) << seed;
    uneven += period.cycle > 1;
  }
  // Of some the distances alternate.
  EXPECT_GT(uneven, 0);
}

TEST(Period, ReplaysAsLongAsThereIsState) {
  // The second pair is slower by a hair, and the first is far ahead of it.
  Problem problem;
  problem.machine = makeMachine(4, 1 << 20, {0, 1000});
  problem.graph.ops = {makeOp("a", 1000, {0}), makeOp("b", 999, {0}),
                       makeOp("c", 1001, {0}), makeOp("d", 10)};
  problem.graph.edges = {{0, 0, 1}, {1, 0, 2}, {2, 0, 3}};
  EXPECT_EQ(periodOf(problem, {0, 1, 2, 3}), 1001);
}

TEST(Period, PlacesAsWellAsAnyAssignment) {
  int32_t better = 0;
  int32_t looked = 0;
  for (uint32_t seed = 0; seed < 24; ++seed) {
    Problem problem = SmallProblems(seed).draw(4, 8);
    problem.machine.stagedThrough.reset();
    if (!check(problem).empty())
      continue;
    Model model(problem);
    ++looked;
    PeriodReplay periods(model);
    int64_t least = never;
    forEachAssignment(model, [&](const Assignment &device) {
      Schedule schedule;
      if (Scheduler(model).run(device, {}, &schedule) == never)
        return;
      std::vector<int64_t> peaks = schedulePeaks(model, device, schedule);
      for (int32_t d = 0; d < model.numDevices; ++d)
        if (peaks[d] > model.deviceMemory(d))
          return;
      least = std::min(least, periods.run(device, schedule).ns());
    });
    PlaceOptions options;
    options.objective = Objective::Period;
    options.budget = Budget::ofEvaluations(10000);
    PlaceResult result = place(problem, options);
    if (least == never) {
      EXPECT_FALSE(result.placement) << seed;
      continue;
    }
    ASSERT_TRUE(result.placement) << seed << ": " << result.error;
    EXPECT_THAT(verify(problem, *result.placement), IsEmpty()) << seed;
    EXPECT_LE(result.periodNs, least) << seed;
    EXPECT_GE(result.periodNs, result.lowerBoundNs) << seed;
    Period period = PeriodReplay(model).run(*result.placement);
    EXPECT_EQ(result.periodNs, period.ns());
    expectPeriod(problem, *result.placement, period);
    EXPECT_EQ(judge(problem, *result.placement, options).periodNs,
              result.periodNs);
    // The same input gives the same output.
    EXPECT_EQ(place(problem, options).placement->startNs,
              result.placement->startNs);
    // One that is made for single steps overlaps no better.
    options.objective = Objective::Makespan;
    PlaceResult step = place(problem, options);
    if (step.placement)
      better += result.periodNs < PeriodReplay(model).run(*step.placement).ns();
  }
  EXPECT_GT(looked, 10);
  EXPECT_GT(better, 0);
}

TEST(Period, StagesOfAChain) {
  // Alone 400; a step of two devices is no faster, but two are under way.
  Problem problem;
  problem.machine = makeMachine(2, 1 << 20, {5, 1000});
  for (int32_t i = 0; i < 4; ++i) {
    problem.graph.ops.push_back(makeOp("op" + std::to_string(i), 100, {0}));
    if (i > 0)
      problem.graph.edges.push_back({i - 1, 0, i});
  }
  PlaceOptions options;
  options.objective = Objective::Period;
  PlaceResult result = place(problem, options);
  ASSERT_TRUE(result.placement) << result.error;
  EXPECT_EQ(result.periodNs, 205);
  EXPECT_EQ(result.placement->makespanNs, 405);
  EXPECT_EQ(result.cycleSteps, 1);
}

TEST(Period, RefusesWhatItKnowsNothingOf) {
  Problem problem = stages(100, 60, 10);
  PlaceOptions options;
  options.objective = Objective::Period;
  EXPECT_THAT(compare(problem, options, {}).error,
              HasSubstr("compared by makespan or max-load"));
  ExactOptions exact;
  exact.objective = Objective::Period;
  EXPECT_THAT(exactPlacement(problem, exact).error,
              HasSubstr("knows nothing of steps that overlap"));
  problem.machine.stagedThrough = problem.machine.devices[0].kind;
  EXPECT_THAT(place(problem, options).error,
              HasSubstr("knows nothing of transfers that are staged"));
}

} // namespace

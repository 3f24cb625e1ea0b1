//===- LimitsTest.cpp - Orders and schedules within limits ------*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Memory/Certificate.h"
#include "Memory/LimitedSchedule.h"
#include "Memory/Memory.h"
#include "Memory/Orders.h"
#include "Memory/PeakEstimate.h"
#include "Model/Random.h"
#include "TestProblems.h"

#include <gmock/gmock.h>

#include <algorithm>

using namespace baechi::placement;
using namespace baechi::placement::test;
using baechi::placement::Random;
using testing::IsEmpty;

namespace {

TEST(RangeMaximum, AgreesWithAnArray) {
  Random random(3);
  for (int32_t size : {0, 1, 2, 3, 7, 8, 40}) {
    std::vector<int64_t> values(size);
    for (int64_t &value : values)
      value = random.below(100);
    memory::RangeMaximum tree(values);
    for (int step = 0; step < 200 && size > 0; ++step) {
      int32_t begin = random.below(size + 1), end = random.below(size + 1);
      int64_t bytes = random.below(200) - 100;
      tree.add(begin, end, bytes);
      for (int32_t k = begin; k < end; ++k)
        values[k] += bytes;
      begin = random.below(size), end = begin + 1 + random.below(size - begin);
      EXPECT_EQ(tree.max(begin, end), *std::max_element(values.begin() + begin,
                                                        values.begin() + end));
    }
    EXPECT_LT(tree.max(0, 0), 0);
  }
}

/// A random problem with a random assignment and a random order of its steps.
class Limits : public testing::TestWithParam<uint32_t> {
protected:
  void SetUp() override {
    problem = randomProblem(GetParam());
    if (!check(problem).empty())
      GTEST_SKIP() << "the random pins or groups contradict each other";
    // In half of them everything takes some time.
    if (GetParam() % 2)
      for (Operator &op : problem.graph.ops)
        for (auto &[kind, ns] : op.timeNs)
          ns = std::max<int64_t>(ns, 1);
    model = std::make_unique<Model>(problem);
    device.resize(model->numNodes);
    for (Unit u = 0; u < model->numUnits; ++u) {
      int32_t d = random.below(model->numDevices);
      while (!model->mayUse(u, d))
        d = (d + 1) % model->numDevices;
      for (int32_t i : model->members[u])
        device[i] = d;
    }
    steps = std::make_unique<memory::Steps>(*model, device);
  }

  memory::StepOrder randomOrder() {
    memory::StepOrder order, ready;
    std::vector<int32_t> waiting(steps->size(), 0);
    for (memory::Step s = 0; s < steps->size(); ++s) {
      steps->forEachPrevious(s, [&](memory::Step) { ++waiting[s]; });
      if (waiting[s] == 0)
        ready.push_back(s);
    }
    while (!ready.empty()) {
      std::swap(ready[random.below(static_cast<int64_t>(ready.size()))],
                ready.back());
      memory::Step s = ready.back();
      ready.pop_back();
      order.push_back(s);
      steps->forEachNext(s, [&](memory::Step next) {
        if (--waiting[next] == 0)
          ready.push_back(next);
      });
    }
    return order;
  }

  /// Every step once, none before what it waits for.
  bool isTopological(const memory::StepOrder &order) const {
    std::vector<int32_t> place(steps->size(), -1);
    for (size_t k = 0; k < order.size(); ++k)
      place[order[k]] = static_cast<int32_t>(k);
    bool good = static_cast<int32_t>(order.size()) == steps->size();
    for (memory::Step s = 0; s < steps->size(); ++s)
      steps->forEachPrevious(s, [&](memory::Step p) {
        good &= place[p] >= 0 && place[p] < place[s];
      });
    return good;
  }

  bool hasInstants() const {
    bool found = false;
    for (memory::Step s = 0; s < steps->size(); ++s)
      found |= steps->isInstant(s);
    return found;
  }

  /// Memories that this order fits, and nothing less.
  void limitTo(const memory::StepOrder &order, int64_t more = 0) {
    auto peaks = memory::orderPeaks(*steps, order);
    for (int32_t d = 0; d < model->numDevices; ++d)
      problem.machine.devices[d].memory = peaks[d] + more;
  }

  Random random{GetParam()};
  Problem problem;
  std::unique_ptr<Model> model;
  Assignment device;
  std::unique_ptr<memory::Steps> steps;
};

TEST_P(Limits, CertificateSeesThePeaks) {
  memory::StepOrder order = randomOrder();
  ASSERT_TRUE(isTopological(order));
  limitTo(order);
  EXPECT_TRUE(memory::Certificate(*steps, order).fits());
  for (Device &each : problem.machine.devices)
    if (each.memory > 0) {
      --each.memory;
      EXPECT_FALSE(memory::Certificate(*steps, order).fits());
      ++each.memory;
    }
}

TEST_P(Limits, CertificateAllowsWhatLeavesTheRestAWay) {
  memory::StepOrder order = randomOrder();
  limitTo(order, random.below(2000));
  memory::Certificate certificate(*steps, order);
  // Steps out of turn, where the certificate allows it and their bytes are
  // there; the rest must then fit in its order.
  memory::StepOrder done;
  int32_t refused = 0;
  for (memory::Step s : randomOrder()) {
    memory::StepOrder rest;
    for (memory::Step other : order)
      if (other != s &&
          std::find(done.begin(), done.end(), other) == done.end())
        rest.push_back(other);
    memory::Levels levels(*steps);
    for (memory::Step other : done) {
      levels.begin(other);
      levels.end(other);
    }
    bool ready = true;
    steps->forEachPrevious(s, [&](memory::Step p) {
      ready &= std::find(done.begin(), done.end(), p) != done.end();
    });
    if (!ready)
      continue;
    levels.begin(s);
    levels.end(s);
    bool fits = true;
    for (memory::Step other : rest) {
      int32_t d = steps->deviceOf(other);
      fits &= levels.level[d] + levels.need(other) <= model->deviceMemory(d);
      levels.begin(other);
      levels.end(other);
    }
    bool taken = certificate.take(s);
    if (taken) {
      EXPECT_TRUE(fits) << "step " << s << " after " << done.size();
      done.push_back(s);
    } else {
      ++refused;
      // A run without duration may be refused although it fits.
      bool instants = false;
      for (memory::Step other : rest)
        instants |= steps->isInstant(other);
      EXPECT_TRUE(!fits || instants) << "step " << s;
    }
  }
  if (refused == 0) {
    EXPECT_EQ(done.size(), order.size());
  }
}

TEST_P(Limits, ScheduleKeepsThem) {
  memory::StepOrder order = randomOrder();
  for (int64_t more : {0, 500, 5000}) {
    limitTo(order, more);
    for (int32_t depth : {0, 1, 16}) {
      memory::LimitedOptions options;
      options.depth = depth;
      Schedule schedule = memory::scheduleLimited(*steps, order, options);
      ASSERT_NE(schedule.makespan, never);
      EXPECT_THAT(verify(problem, toPlacement(*model, device, schedule)),
                  IsEmpty());
    }
  }
}

TEST_P(Limits, ScheduleGivesUpAtTheCutoff) {
  memory::StepOrder order = randomOrder();
  limitTo(order);
  memory::LimitedOptions options;
  int64_t makespan = memory::scheduleLimited(*steps, order, options).makespan;
  options.cutoff = makespan;
  EXPECT_EQ(memory::scheduleLimited(*steps, order, options).makespan, makespan);
  options.cutoff = makespan - 1;
  EXPECT_EQ(memory::scheduleLimited(*steps, order, options).makespan, never);
}

TEST_P(Limits, OrderByEndFitsWhereTheScheduleDoes) {
  Schedule schedule;
  ASSERT_NE(Scheduler(*model).run(device, {}, &schedule), never);
  memory::StepOrder order = memory::orderOf(*steps, schedule);
  ASSERT_TRUE(isTopological(order));
  if (hasInstants())
    return;
  auto whole = schedulePeaks(*model, device, schedule);
  auto single = memory::orderPeaks(*steps, order);
  for (int32_t d = 0; d < model->numDevices; ++d)
    EXPECT_LE(single[d], whole[d]);
}

TEST_P(Limits, PassesKeepTheOrderTopological) {
  memory::StepOrder order = randomOrder();
  EXPECT_TRUE(isTopological(memory::hoistShrinking(*steps, order)));
  EXPECT_TRUE(isTopological(memory::sinkGrowing(*steps, order)));
  for (bool climbs : {false, true})
    EXPECT_TRUE(isTopological(memory::valleyOrder(*steps, order, climbs)));
  for (const memory::StepOrder &plain :
       memory::plainOrders(*steps, memory::leanOrders(*model)))
    EXPECT_TRUE(isTopological(plain));
}

TEST_P(Limits, FindOrderFitsWhereItSays) {
  // Never worse than what it begins with.
  std::vector<memory::StepOrder> bases{randomOrder()};
  auto peaks = memory::orderPeaks(*steps, bases[0]);
  for (Device &each : problem.machine.devices)
    each.memory = *std::min_element(peaks.begin(), peaks.end());
  memory::FoundOrder found = memory::findOrder(*steps, bases);
  EXPECT_TRUE(isTopological(found.order));
  EXPECT_EQ(found.peaks, memory::orderPeaks(*steps, found.order));
  EXPECT_EQ(found.excess, memory::excessOf(*model, found.peaks));
  EXPECT_LE(found.excess, memory::excessOf(*model, peaks));
}

TEST_P(Limits, LeastPossiblePeaksAreBounds) {
  auto least = memory::leastPossiblePeaks(*steps);
  auto peaks = memory::orderPeaks(*steps, randomOrder());
  for (int32_t d = 0; d < model->numDevices; ++d)
    EXPECT_LE(least[d], peaks[d]);
}

TEST_P(Limits, EstimateIsTheBestOfItsOrders) {
  std::vector<int64_t> smallest(model->numDevices, never);
  for (const memory::StepOrder &order :
       memory::plainOrders(*steps, memory::leanOrders(*model))) {
    auto peaks = memory::orderPeaks(*steps, order);
    for (int32_t d = 0; d < model->numDevices; ++d)
      smallest[d] = std::min(smallest[d], peaks[d]);
  }
  for (int32_t d = 0; d < model->numDevices; ++d)
    problem.machine.devices[d].memory = smallest[d] * 9 / 10;
  int64_t least = never;
  for (const memory::StepOrder &order :
       memory::plainOrders(*steps, memory::leanOrders(*model)))
    least = std::min(
        least, memory::excessOf(*model, memory::orderPeaks(*steps, order)));
  memory::PeakEstimate estimate(*model);
  EXPECT_EQ(estimate.excess(device), least);
  EXPECT_EQ(memory::excessOf(*model, estimate.peaks()), least);
}

TEST_P(Limits, EstimateKnowsWhoHoldsThePeak) {
  if (hasInstants())
    return; // a peak may be after a run, not while it lasts
  memory::PeakEstimate estimate(*model);
  estimate.excess(device);
  for (int32_t d = 0; d < model->numDevices; ++d) {
    auto held = estimate.heldAt(estimate.peakOf(d), device, d);
    int64_t sum = 0;
    for (Unit u = 0; u < model->numUnits; ++u) {
      sum += held[u];
      bool isThere = device[model->members[u].front()] == d;
      EXPECT_TRUE(isThere || held[u] == 0);
    }
    EXPECT_EQ(sum, estimate.peaks()[d]);
  }
}

INSTANTIATE_TEST_SUITE_P(Seeds, Limits, testing::Range(0u, 60u));

/// Whether any order at all fits, by trying them one after the other.
bool someOrderFits(const memory::Steps &steps, std::vector<uint8_t> &done,
                   const memory::Levels &levels) {
  bool all = true;
  for (memory::Step s = 0; s < steps.size(); ++s) {
    bool ready = !done[s];
    all &= done[s] != 0;
    steps.forEachPrevious(s, [&](memory::Step p) { ready &= done[p] != 0; });
    int32_t d = steps.deviceOf(s);
    if (!ready ||
        levels.level[d] + levels.need(s) > steps.model.deviceMemory(d))
      continue;
    memory::Levels next = levels;
    next.begin(s);
    next.end(s);
    done[s] = 1;
    bool found = someOrderFits(steps, done, next);
    done[s] = 0;
    if (found)
      return true;
  }
  return all;
}

TEST(Orders, SearchFindsAnOrderWhereThereIsOne) {
  Random random(5);
  int32_t possible = 0, impossible = 0;
  for (int trial = 0; trial < 300; ++trial) {
    Problem problem;
    problem.machine = makeMachine(2, 20 + random.below(30));
    for (int32_t i = 0; i < 6; ++i) {
      problem.graph.ops.push_back(makeOp("op" + std::to_string(i),
                                         random.below(3), {random.below(20)}));
      problem.graph.ops.back().scratch = random.below(2) ? random.below(20) : 0;
      for (int32_t j = 0; j < i; ++j)
        if (random.oneIn(3))
          problem.graph.edges.push_back({j, 0, i});
    }
    Model model(problem);
    Assignment device(6);
    for (int32_t &d : device)
      d = random.oneIn(3);
    memory::Steps steps(model, device);
    std::vector<uint8_t> done(steps.size(), 0);
    bool fits = someOrderFits(steps, done, memory::Levels(steps));
    ++(fits ? possible : impossible);
    bool complete = false;
    memory::StepOrder found = memory::searchOrder(steps, 1'000'000, complete);
    EXPECT_TRUE(complete);
    EXPECT_EQ(!found.empty(), fits) << "trial " << trial;
    if (fits) {
      EXPECT_EQ(memory::excessOf(model, memory::orderPeaks(steps, found)), 0);
    }
  }
  EXPECT_GT(possible, 50);
  EXPECT_GT(impossible, 50);
}

TEST(Orders, ShrinkingIsHoistedAndGrowingSinks) {
  // Three chains of a large and a small tensor, all large ones first.
  Problem problem;
  problem.machine = makeMachine(1, 0);
  for (int32_t k = 0; k < 3; ++k) {
    problem.graph.ops.push_back(makeOp("make", 10, {100}));
    problem.graph.ops.push_back(makeOp("use", 10, {1}));
    problem.graph.ops.back().result = true;
    problem.graph.edges.push_back({2 * k, 0, 2 * k + 1});
  }
  Model model(problem);
  Assignment device(6, 0);
  memory::Steps steps(model, device);
  memory::StepOrder wide{0, 2, 4, 1, 3, 5};
  EXPECT_EQ(memory::orderPeaks(steps, wide), std::vector<int64_t>{301});
  for (const memory::StepOrder &order :
       {memory::hoistShrinking(steps, wide), memory::sinkGrowing(steps, wide)})
    EXPECT_EQ(memory::orderPeaks(steps, order), std::vector<int64_t>{103});
}

TEST(Orders, SegmentsEndInValleys) {
  // Four chains that go up twice before they come down: one after the other.
  Problem problem;
  problem.machine = makeMachine(1, 0);
  memory::StepOrder wide;
  for (int32_t k = 0; k < 4; ++k)
    for (int64_t bytes : {10, 100, 1}) {
      auto i = static_cast<int32_t>(problem.graph.ops.size());
      problem.graph.ops.push_back(makeOp("op", 10, {bytes}));
      if (bytes != 10)
        problem.graph.edges.push_back({i - 1, 0, i});
      problem.graph.ops.back().result = bytes == 1;
    }
  for (int32_t each : {0, 1, 2})
    for (int32_t k = 0; k < 4; ++k)
      wide.push_back(3 * k + each);
  Model model(problem);
  Assignment device(12, 0);
  memory::Steps steps(model, device);
  EXPECT_EQ(memory::orderPeaks(steps, wide), std::vector<int64_t>{410});
  for (bool climbs : {false, true})
    EXPECT_EQ(
        memory::orderPeaks(steps, memory::valleyOrder(steps, wide, climbs)),
        std::vector<int64_t>{113});
}

/// The least peak over all orders behind \p done.
static int64_t leastPeak(const memory::Steps &steps, std::vector<uint8_t> &done,
                         const memory::Levels &levels) {
  int64_t least = never;
  for (memory::Step s = 0; s < steps.size(); ++s) {
    bool isReady = !done[s];
    steps.forEachPrevious(
        s, [&](memory::Step p) { isReady = isReady && done[p]; });
    if (!isReady)
      continue;
    memory::Levels after = levels;
    int64_t peak = levels.level[0] + levels.need(s);
    after.begin(s);
    after.end(s);
    done[s] = 1;
    least = std::min(least, std::max(peak, leastPeak(steps, done, after)));
    done[s] = 0;
  }
  return least == never ? levels.level[0] : least;
}

TEST(Orders, ValleysAreNearTheLeastPeak) {
  Random random(9);
  int32_t least = 0, trials = 200;
  for (int32_t trial = 0; trial < trials; ++trial) {
    Problem problem;
    problem.machine = makeMachine(1, 0);
    for (int32_t i = 0; i < 8; ++i) {
      problem.graph.ops.push_back(
          makeOp("op" + std::to_string(i), 1, {1 + random.below(50)}));
      for (int32_t j = 0; j < i; ++j)
        if (random.oneIn(4))
          problem.graph.edges.push_back({j, 0, i});
    }
    Model model(problem);
    Assignment device(8, 0);
    memory::Steps steps(model, device);
    std::vector<uint8_t> done(8, 0);
    int64_t best = leastPeak(steps, done, memory::Levels(steps)), found = never;
    for (bool climbs : {false, true}) {
      memory::StepOrder order = memory::valleyOrder(steps, model.order, climbs);
      found = std::min(found, memory::orderPeaks(steps, order)[0]);
      found = std::min(found, memory::orderPeaks(
                                  steps, memory::sinkGrowing(steps, order))[0]);
    }
    EXPECT_GE(found, best);
    least += found == best;
  }
  EXPECT_GE(least, trials * 8 / 10);
}

TEST(Orders, TransfersMakeRoomAtHome) {
  // a's tensor must leave d0 before b runs there, long before c needs it.
  Problem problem;
  problem.machine = makeMachine(2, 100);
  problem.graph.ops = {makeOp("a", 1, {80}), makeOp("b", 1, {90}),
                       makeOp("c", 1, {1})};
  problem.graph.edges = {{0, 0, 2}, {0, -1, 1}, {1, 0, 2}};
  problem.graph.ops[1].outputs[0].copy = 10;
  Model model(problem);
  Assignment device{0, 0, 1};
  memory::Steps steps(model, device);
  memory::FoundOrder found = memory::findOrder(
      steps, memory::plainOrders(steps, memory::leanOrders(model)));
  EXPECT_EQ(found.excess, 0);
  Schedule schedule = memory::scheduleLimited(steps, found.order, {});
  EXPECT_THAT(verify(problem, toPlacement(model, device, schedule)), IsEmpty());
}

} // namespace

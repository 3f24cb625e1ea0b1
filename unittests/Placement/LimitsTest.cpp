//===- LimitsTest.cpp - Random schedules within limits -----------*- C++
//-*-===//
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

} // namespace

//===- PipelinesTest.cpp - Micro-batches through stages ---------*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Memory/Downstream.h"
#include "Memory/LimitedSchedule.h"
#include "Memory/Memory.h"
#include "Memory/Orders.h"
#include "TestProblems.h"

#include <gmock/gmock.h>

using namespace baechi::placement;
using namespace baechi::placement::test;
using testing::IsEmpty;

namespace {

constexpr int32_t mostStages = 8, mostBatches = 32;

/// Work of a micro-batch in a stage. No time for weights: their gradients are a
/// part of the backward work.
struct Times {
  int64_t forward = 1, backward = 1, weights = 0;
  int64_t all() const { return forward + backward + weights; }
};

/// Micro-batches through stages, each on its device. An activation is one byte
/// from the forward work to what needs it last; nothing else takes room. What a
/// stage tells the next takes no time: a signal, as a message of no time would
/// come after what is chosen at that time. `chained`: gradients are added up in
/// the order of the micro-batches.
class Pipeline {
public:
  Pipeline(int32_t stages, int32_t batches, Times times, int64_t memory,
           bool chained = true)
      : stages(stages), times(times) {
    problem.machine = makeMachine(stages, memory, {0, 1}, LinkModel::Unlimited);
    for (int32_t batch = 0; batch < batches; ++batch) {
      for (int32_t stage = 0; stage < stages; ++stage)
        add("F", stage, batch, times.forward);
      for (int32_t stage = stages; stage-- > 0;)
        add("B", stage, batch, times.backward);
      for (int32_t stage = 0; times.weights && stage < stages; ++stage)
        add("W", stage, batch, times.weights);
    }
    for (int32_t batch = 0; batch < batches; ++batch)
      for (int32_t stage = 0; stage < stages; ++stage)
        connect(stage, batch, chained);
  }

  Problem problem;

  Assignment assignment() const {
    Assignment device;
    for (const Operator &op : problem.graph.ops)
      device.push_back(op.pin->back() - '0');
    return device;
  }

  /// As a user gets it: a placer alone, every stage pinned.
  PlaceResult placed() const {
    PlaceOptions options = onlyPlacer("metf", problem);
    options.grouping = {};
    return place(problem, options);
  }

private:
  void add(const std::string &work, int32_t stage, int32_t batch,
           int64_t time) {
    Operator op = makeOp(
        work + std::to_string(stage) + "." + std::to_string(batch), time, {0});
    if (work == "F")
      op.outputs = {Output(/*bytes=*/0, /*memory=*/1, /*copy=*/0)};
    op.pin = "d" + std::to_string(stage);
    problem.graph.ops.push_back(std::move(op));
  }

  int32_t forward(int32_t stage, int32_t batch) const {
    return batch * (times.weights ? 3 : 2) * stages + stage;
  }
  int32_t backward(int32_t stage, int32_t batch) const {
    return forward(0, batch) + 2 * stages - 1 - stage;
  }
  int32_t weights(int32_t stage, int32_t batch) const {
    return forward(0, batch) + 2 * stages + stage;
  }

  void connect(int32_t stage, int32_t batch, bool chained) {
    std::vector<Edge> &edges = problem.graph.edges;
    int32_t f = forward(stage, batch), b = backward(stage, batch);
    edges.push_back({f, 0, b});
    if (stage + 1 < stages) {
      edges.push_back({f, -1, forward(stage + 1, batch)});
      edges.push_back({backward(stage + 1, batch), -1, b});
    }
    int32_t last = b, before = backward(stage, batch - 1);
    if (times.weights) {
      last = weights(stage, batch);
      before = weights(stage, batch - 1);
      edges.push_back({f, 0, last});
      edges.push_back({b, 0, last});
    }
    if (chained && batch > 0)
      edges.push_back({before, 0, last});
  }

  int32_t stages;
  Times times;
};

/// Every number of stages p and of micro-batches m, at least \p fewest(p).
template <typename Fewest, typename Check>
void forEachSize(Fewest fewest, Check check) {
  for (int32_t p = 1; p <= mostStages; ++p)
    for (int32_t m = fewest(p); m <= mostBatches; ++m) {
      SCOPED_TRACE("p = " + std::to_string(p) + ", m = " + std::to_string(m));
      check(p, m);
    }
}

int32_t one(int32_t /*p*/) { return 1; }

// Huang et al., GPipe, NeurIPS 2019, section 2.3: of m + p - 1 slots p - 1 are
// bubbles.
TEST(Pipelines, GPipe) {
  for (Times times : {Times{1, 1}, Times{1, 2}, Times{2, 3}})
    forEachSize(one, [&](int32_t p, int32_t m) {
      Pipeline pipeline(p, m, times, /*memory=*/m);
      PlaceResult result = pipeline.placed();
      ASSERT_TRUE(result.placement) << result.error;
      EXPECT_EQ(result.placement->makespanNs, (m + p - 1) * times.all());
    });
}

// Narayanan et al., Memory-Efficient Pipeline-Parallel DNN Training, ICML 2021
// (PipeDream-Flush): the same time with at most p micro-batches alive.
TEST(Pipelines, OneForwardOneBackward) {
  for (Times times : {Times{1, 1}, Times{1, 2}})
    for (bool chained : {true, false})
      forEachSize(one, [&](int32_t p, int32_t m) {
        Pipeline pipeline(p, m, times, /*memory=*/p, chained);
        PlaceResult result = pipeline.placed();
        ASSERT_TRUE(result.placement) << result.error;
        EXPECT_EQ(result.placement->makespanNs, (m + p - 1) * times.all());
        EXPECT_LE(result.usage[0].peakBytes, p);
      });
}

// Qi et al., Zero Bubble Pipeline Parallelism, arXiv 2401.10241, section 2:
// ZB-H1 has bubbles of (p - 1)(F + B - W) in the memory of 1F1B, for as many
// micro-batches as stages and more.
TEST(Pipelines, ZeroBubbleH1) {
  forEachSize([](int32_t p) { return p; },
              [](int32_t p, int32_t m) {
                Pipeline pipeline(p, m, {1, 1, 1}, /*memory=*/p);
                PlaceResult result = pipeline.placed();
                ASSERT_TRUE(result.placement) << result.error;
                EXPECT_EQ(result.placement->makespanNs,
                          3 * m + (p - 1) * (1 + 1 - 1));
                for (const DeviceUsage &device : result.usage)
                  EXPECT_LE(device.peakBytes, p);
              });
}

// The same section: ZB-H2 has bubbles of (p - 1)(F + B - 2W), none, within a
// stage, in the memory of 2p - 1 micro-batches. Stages begin and end one after
// the other, so that the step takes as long as with ZB-H1.
TEST(Pipelines, ZeroBubbleH2) {
  forEachSize(
      [](int32_t p) { return 2 * p - 1; },
      [](int32_t p, int32_t m) {
        Pipeline pipeline(p, m, {1, 1, 1}, /*memory=*/2 * p - 1);
        Assignment device = pipeline.assignment();
        Model model(pipeline.problem);
        memory::Steps steps(model, device);
        memory::FoundOrder found = memory::findOrder(
            steps, memory::plainOrders(steps, memory::leanOrders(model)));
        ASSERT_EQ(found.excess, 0);
        std::vector<int64_t> priority = memory::downstreamFirst(model, device);
        memory::LimitedOptions options;
        options.priority = priority;
        Schedule schedule =
            memory::scheduleLimited(steps, found.order, options);
        ASSERT_EQ(schedule.makespan, 3 * m + (p - 1));
        EXPECT_THAT(
            verify(pipeline.problem, toPlacement(model, device, schedule)),
            IsEmpty());
        for (int32_t stage = 0; stage < p; ++stage) {
          int64_t first = never, last = 0;
          for (int32_t i = 0; i < model.numNodes; ++i)
            if (device[i] == stage) {
              first = std::min(first, schedule.start[i]);
              last = std::max(last, schedule.start[i] + 1);
            }
          EXPECT_EQ(last - first, 3 * m) << "stage " << stage;
        }
      });
}

TEST(Pipelines, LessMemoryTakesLonger) {
  Pipeline pipeline(4, 8, {1, 1, 1}, /*memory=*/2);
  PlaceResult result = pipeline.placed();
  ASSERT_TRUE(result.placement) << result.error;
  EXPECT_GT(result.placement->makespanNs, 3 * 8 + 3);
  for (const DeviceUsage &device : result.usage)
    EXPECT_LE(device.peakBytes, 2);
}

} // namespace

//===- RankOverlapTest.cpp - Steps of several ranks that overlap ----------===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Session::steps over ranks that are threads of this process, as in
/// RanksTest.cpp: values are those of the same steps without devices.
///
//===----------------------------------------------------------------------===//

#include "GivenCalls.h"
#include "MixingProgram.h"
#include "RankChain.h"
#include "TrainingProgram.h"

#include <atomic>

using namespace baechi::runtime;
using namespace baechi::runtime::test;

namespace {

constexpr size_t count = 25;

class RankOverlapTest : public RankChainTest {
protected:
  void buildMixing(int32_t devices, Way way = Way::Copied) {
    program = makeMixing(devices, way);
    for (int32_t device = 0; device < devices; ++device)
      bodies[device] =
          mixingBody(device, devices, way, /*awaits=*/device % 2 == 0);
  }

  /// States stay where they are.
  static void callMixing(Session &session, size_t devices,
                         std::vector<std::vector<uint64_t>> &inputs,
                         std::vector<std::vector<uint64_t>> &outputs,
                         int64_t first) {
    std::vector<std::vector<const void *>> arguments;
    std::vector<std::vector<void *>> results;
    for (size_t step = 0; step < count; ++step) {
      arguments.emplace_back(2 * devices, nullptr);
      results.emplace_back();
      for (size_t device = 0; device < devices; ++device) {
        arguments.back()[2 * device + 1] = &inputs[device][step];
        results.back().push_back(&outputs[device][step]);
      }
    }
    Calls calls(first, arguments, results);
    ASSERT_SUCCESS(session.overlapCalls(first, calls));
    EXPECT_EQ(calls.endedCalls, int64_t(count));
  }

  /// Twice, with a separate step between.
  static void expectMixing(Session &session, size_t devices,
                           bool byCalls = false) {
    for (int round = 0; round < 2; ++round) {
      std::vector<std::vector<uint64_t>> inputs, outputs;
      std::vector<Feed> feeds;
      std::vector<Fetch> fetches;
      for (size_t device = 0; device < devices; ++device) {
        inputs.emplace_back();
        for (size_t step = 0; step < count; ++step)
          inputs.back().push_back(step * 11 + device);
        outputs.emplace_back(count, 0);
        std::vector<char> first = stateOf({device + 1, 7});
        ASSERT_SUCCESS(
            session.setArgument(2 * device, first.data(), first.size()));
      }
      for (size_t device = 0; device < devices; ++device) {
        feeds.push_back({2 * device + 1, reinterpret_cast<const char *>(
                                             inputs[device].data())});
        fetches.push_back(
            {device, reinterpret_cast<char *>(outputs[device].data())});
      }
      if (byCalls)
        ASSERT_NO_FATAL_FAILURE(
            callMixing(session, devices, inputs, outputs, /*first=*/3 + round));
      else
        ASSERT_SUCCESS(session.steps(int64_t(count), feeds, fetches));
      Mixing expected = mixAlone(int32_t(devices), inputs);
      for (size_t device = 0; device < devices; ++device) {
        EXPECT_EQ(outputs[device], expected.results[device]) << device;
        std::vector<char> state(72);
        ASSERT_SUCCESS(session.getArgument(2 * device, state.data(), 72));
        EXPECT_EQ(state, stateOf(expected.states[device])) << device;
      }
      ASSERT_SUCCESS(session.step());
    }
  }
};

TEST_F(RankOverlapTest, ResultsAreThoseOfSeparateSteps) {
  for (auto [ranks, devices] :
       {std::pair(2, 2), {2, 4}, {2, 3}, {3, 3}, {3, 4}})
    for (bool eager : {false, true})
      for (int32_t delay : {0, 40}) {
        build(ranks);
        buildMixing(devices);
        hub->eager = eager;
        hub->longestDelay = delay;
        run([&](Session &session) { expectMixing(session, size_t(devices)); });
        expectNoErrors();
      }
}

TEST_F(RankOverlapTest, CallsThatComeOneByOneDoTheSame) {
  for (auto [ranks, devices] : {std::pair(2, 2), {2, 3}, {3, 3}, {3, 4}})
    for (bool eager : {false, true})
      for (int32_t delay : {0, 40})
        for (Way way : {Way::Copied, Way::Network}) {
          build(ranks);
          buildMixing(devices, way);
          hub->eager = eager;
          hub->longestDelay = delay;
          run([&](Session &session) {
            EXPECT_EQ(session.whySeparate(), "");
            expectMixing(session, size_t(devices), /*byCalls=*/true);
          });
          expectNoErrors();
        }
}

TEST_F(RankOverlapTest, AndOverSockets) {
  for (auto [ranks, devices] : {std::pair(2, 2), {3, 4}}) {
    buildOverSockets(ranks);
    buildMixing(devices);
    for (bool byCalls : {false, true})
      run([&](Session &each) { expectMixing(each, size_t(devices), byCalls); });
    expectNoErrors();
  }
}

TEST_F(RankOverlapTest, AndOverASimulatedNetwork) {
  for (auto [ranks, devices] : {std::pair(2, 2), {2, 3}, {3, 4}})
    for (bool eager : {false, true}) {
      build(ranks);
      buildMixing(devices, Way::Network);
      hub->eager = eager;
      run([&](Session &session) { expectMixing(session, size_t(devices)); });
      expectNoErrors();
    }
}

TEST_F(RankOverlapTest, ASimulatedLinkTakesItsTimeBetweenRanks) {
  build(2);
  buildChain();
  program.queues[0].link = SimulatedLink{3'000'000, 100, {0}};
  run([&](Session &session) {
    auto start = std::chrono::steady_clock::now();
    ASSERT_SUCCESS(session.steps(10));
    EXPECT_GE(std::chrono::steady_clock::now() - start,
              std::chrono::milliseconds(30));
    ASSERT_SUCCESS(session.step());
    EXPECT_GE(session.timeline().wallNs, 3'000'000);
  });
  expectNoErrors();
}

TEST_F(RankOverlapTest, LongMessagesOfTwoStepsDoNotMix) {
  for (bool eager : {false, true}) {
    build(2);
    buildMixing(3);
    hub->eager = eager;
    hub->longestDelay = 10;
    for (auto &member : members)
      static_cast<LoopbackTransport &>(member->transport()).mostBytes = 3;
    run([&](Session &session) { expectMixing(session, 3); });
    EXPECT_EQ(0, hub->wrong);
  }
}

TEST_F(RankOverlapTest, CarriedMessagesCrossTheBorderOfSteps) {
  for (uint32_t seed = 0; seed < 60; ++seed) {
    std::mt19937 random(seed);
    Training training = randomTraining(random);
    program = makeTraining(training, random);
    for (QueueInfo &queue : program.queues)
      if (queue.link)
        queue.link->lanes = {queue.from};
    build(2 + int32_t(random() % size_t(training.devices - 1)));
    hub->eager = random() % 2;
    hub->longestDelay = random() % 2 ? 30 : 0;
    for (int32_t device = 0; device < training.devices; ++device)
      bodies[device] = trainingBody(training, device);
    run([&](Session &session) {
      Values values;
      for (size_t i = 0; i < training.parameters(); ++i) {
        values.push_back(randomValues(training.numbers[i], random));
        ASSERT_SUCCESS(session.setArgument(i, values[i].data(),
                                           size_t(8 * training.numbers[i])));
      }
      for (int64_t steps : {5, 1, 4}) {
        if (steps == 1)
          ASSERT_SUCCESS(session.step());
        else
          ASSERT_SUCCESS(session.steps(steps));
        for (int64_t step = 0; step < steps; ++step)
          trainAlone(training, values);
        // What is set meanwhile lies on any rank.
        ASSERT_NO_FATAL_FAILURE(
            trainByCalls(session, training, values, steps + 2, random));
        for (size_t i = 0; i < training.parameters(); ++i) {
          std::vector<uint64_t> got(values[i].size());
          ASSERT_SUCCESS(session.getArgument(i, got.data(), 8 * got.size()));
          ASSERT_EQ(got, values[i]) << "seed " << seed << ", parameter " << i;
        }
      }
    });
    expectNoErrors();
  }
}

/// Two rows of four bytes, two columns on either device.
void cutColumns(BufferInfo &buffer, int64_t offset) {
  buffer.shape = {2, 4};
  buffer.dim = 1;
  buffer.pieces = {{"left", 0, offset, 4, 0, 2}, {"right", 1, offset, 4, 2, 2}};
}

TEST_F(RankOverlapTest, PiecesGoToAndComeFromTheirRanks) {
  build(2);
  program = makeProgram(2);
  addArgument(program, 0, 0, 8);
  cutColumns(program.arguments[0], 0);
  addResult(program, 0, 64, 8);
  cutColumns(program.results[0], 64);
  for (int32_t device : {0, 1})
    bodies[device] = [=](Context, char *arena) {
      for (int i = 0; i < 4; ++i)
        arena[64 + i] = char(arena[i] + 1 + device);
      return 0;
    };
  run([&](Session &session) {
    std::vector<char> given(16), expected(16), got(16);
    for (char i = 0; i < 16; ++i) {
      given[size_t(i)] = char(3 * i);
      expected[size_t(i)] = char(3 * i + (i % 4 < 2 ? 1 : 2));
    }
    std::vector<Feed> feeds = {{0, given.data()}};
    std::vector<Fetch> fetches = {{0, got.data()}};
    ASSERT_SUCCESS(session.steps(2, feeds, fetches));
    EXPECT_EQ(got, expected);
    // A value of a call is one step's.
    std::vector<char> one(8);
    Calls calls(7, {{given.data()}, {nullptr}}, {{nullptr}, {one.data()}});
    ASSERT_SUCCESS(session.overlapCalls(7, calls));
    EXPECT_EQ(one, std::vector<char>(expected.begin(), expected.begin() + 8));
  });
  expectNoErrors();
}

TEST_F(RankOverlapTest, ASenderIsAStepAheadAndNoFurther) {
  for (bool eager : {false, true}) {
    build(2);
    buildChain();
    hub->eager = eager;
    std::atomic<int64_t> first = 0, last = 0, most = 0;
    bodies[0] = [&](Context context, char *arena) {
      most = std::max<int64_t>(most, ++first - last);
      return baechi_send(context, 0, 0, arena);
    };
    bodies[1] = [&](Context context, char *arena) {
      if (baechi_recv(context, 0, 0, arena) || baechi_await_recv(context, 0, 0))
        return 1;
      std::this_thread::sleep_for(std::chrono::milliseconds(2));
      ++last;
      return 0;
    };
    run([&](Session &session) { ASSERT_SUCCESS(session.steps(60)); });
    expectNoErrors();
    // It has left `last` steps, computes one, has one message more, and the
    // sender offers another, as its own count goes up before it does.
    EXPECT_LE(most, 4);
    EXPECT_GE(most, 2);
    EXPECT_EQ(first, 60);
    EXPECT_EQ(last, 60);
  }
}

/// Nothing that rank 1 sends arrives for a second, less than it may be silent,
/// and it computes ten times as long as the other.
TEST_F(RankOverlapTest, ALinkThatIsCutForASecondAndASlowRankLoseNothing) {
  build(2);
  buildMixing(2);
  auto step = std::make_shared<int>(0);
  std::thread mending;
  for (int32_t device : {0, 1})
    bodies[device] = [&, device, step, inner = bodies[device]](Context context,
                                                               char *arena) {
      std::this_thread::sleep_for(std::chrono::milliseconds(device ? 10 : 1));
      if (device == 1 && ++*step == 5) {
        hub->silenced = 1;
        mending = std::thread([&] {
          std::this_thread::sleep_for(std::chrono::seconds(1));
          hub->silenced = -1;
        });
      }
      return inner(context, arena);
    };
  run([&](Session &session) { expectMixing(session, 2); });
  mending.join();
  expectNoErrors();
}

TEST_F(RankOverlapTest, ARankWithNothingToDoTakesPartInCalls) {
  build(3);
  program = makeProgram(3);
  addArgument(program, 0, 0, 8);
  addResult(program, 0, 0, 8);
  bodies[0] = bodies[1] = bodies[2] = doNothing;
  run([&](Session &session) {
    uint64_t given = 17, got = 0;
    Calls calls(0, {{&given}, {nullptr}}, {{nullptr}, {&got}});
    ASSERT_SUCCESS(session.overlapCalls(0, calls));
    EXPECT_EQ(calls.endedCalls, 2);
    EXPECT_EQ(got, given);
    Calls none(0, {}, {});
    ASSERT_SUCCESS(session.overlapCalls(0, none));
    ASSERT_SUCCESS(session.step());
  });
  expectNoErrors();
}

} // namespace

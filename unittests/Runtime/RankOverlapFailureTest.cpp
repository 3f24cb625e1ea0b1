//===- RankOverlapFailureTest.cpp - How steps that overlap end -*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// What is wrong in one of several steps that run at once ends all of them on
/// all ranks, or is refused before.
///
//===----------------------------------------------------------------------===//

#include "GivenCalls.h"
#include "RankChain.h"

#include <gmock/gmock.h>

using namespace baechi::runtime;
using namespace baechi::runtime::test;
using testing::HasSubstr;
using testing::StartsWith;

namespace {

class RankOverlapFailureTest : public RankChainTest {
protected:
  /// The same, but that a device fails in the third step.
  void buildFailingChain(int32_t culprit) {
    buildChain();
    auto inner = bodies[culprit];
    auto step = std::make_shared<int>(0);
    bodies[culprit] = [=](Context context, char *arena) {
      baechi_operator_begin(context, 0);
      if (++*step == 3)
        return baechi_fail(context, "out of paper");
      baechi_operator_end(context, 0);
      return inner(context, arena);
    };
  }
};

TEST_F(RankOverlapFailureTest, RefusesLinksThatProcessesShare) {
  build(2);
  program = makeProgram(2);
  for (int32_t from : {0, 1}) {
    addQueue(program, from, 1 - from, {8});
    program.queues.back().link = SimulatedLink{1000, 100, {0}};
  }
  bodies[0] = bodies[1] = doNothing;
  run([](Session &) { FAIL(); });
  EXPECT_EQ("rank 0: the simulated links from host0 to host1 and from host1 to "
            "host0 take turns, but different processes send over them, and "
            "none sees the other's messages: give the machine links of their "
            "own (\"link_model\": \"parallel\"), or run it in one process",
            createErrors[0]);
}

TEST_F(RankOverlapFailureTest, AFailureEndsAllStepsOnAllRanks) {
  for (int32_t culprit : {0, 1}) {
    build(2);
    buildFailingChain(culprit);
    std::string number = std::to_string(culprit);
    run([&](Session &session) {
      std::string error = session.steps(1000).message();
      EXPECT_THAT(error, StartsWith("rank " + number + ": "));
      EXPECT_THAT(error, HasSubstr("host" + number));
      EXPECT_THAT(error, HasSubstr("step 3"));
      EXPECT_THAT(error, HasSubstr("out of paper"));
      EXPECT_FALSE(session.usable());
    });
    EXPECT_EQ("", followErrors[1]);
  }
}

TEST_F(RankOverlapFailureTest, AFailureEndsAllCallsOnAllRanks) {
  for (int32_t culprit : {0, 1}) {
    build(2);
    buildFailingChain(culprit);
    std::string number = std::to_string(culprit);
    run([&](Session &session) {
      Calls calls(10, std::vector<std::vector<const void *>>(1000),
                  std::vector<std::vector<void *>>(1000));
      std::string error = session.overlapCalls(10, calls).message();
      EXPECT_THAT(error, StartsWith("rank " + number + ": "));
      EXPECT_THAT(error, HasSubstr("step 13"));
      EXPECT_THAT(error, HasSubstr("out of paper"));
      EXPECT_LE(calls.endedCalls, 2);
      EXPECT_FALSE(session.usable());
    });
    EXPECT_EQ("", followErrors[1]);
  }
}

TEST_F(RankOverlapFailureTest, ALostRankEndsTheSteps) {
  build(2);
  buildChain();
  auto step = std::make_shared<int>(0);
  bodies[1] = [this, step, inner = bodies[1]](Context context, char *arena) {
    if (++*step == 5) {
      hub->killed = 1;
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
    }
    return inner(context, arena);
  };
  run([&](Session &session) {
    EXPECT_THAT(session.steps(1000).message(),
                StartsWith("rank 1 was lost: its process has ended; it held "
                           "host1"));
    EXPECT_FALSE(session.usable());
  });
}

TEST_F(RankOverlapFailureTest, RefusesMoreMessagesThanTagsOfTwoSteps) {
  build(2);
  program = makeProgram(2);
  addQueue(program, 0, 1, std::vector<int64_t>(20, 8));
  for (auto &member : members)
    static_cast<LoopbackTransport &>(member->transport()).mostTags = 40;
  bodies[0] = bodies[1] = doNothing;
  run([&](Session &session) {
    EXPECT_EQ("steps with 20 messages, more than can be told apart between "
              "processes where two steps send at once, do not overlap: run "
              "them one by one",
              session.steps(2).message());
    EXPECT_TRUE(session.usable());
  });
}

} // namespace

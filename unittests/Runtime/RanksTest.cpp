//===- RanksTest.cpp - Programs over several ranks -*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Ranks are threads of this process that exchange messages by a loopback
/// transport (LoopbackTransport.h). What mpirun adds is in
/// test/Tools/run-ranks.test.
///
//===----------------------------------------------------------------------===//

#include "Baechi/Runtime/Launch.h"
#include "RankRing.h"

#include <gmock/gmock.h>

#include <chrono>
#include <thread>

using namespace baechi::runtime;
using namespace baechi::runtime::test;
using testing::HasSubstr;
using testing::StartsWith;

namespace {

class RanksTest : public RankRing {};

TEST_F(RanksTest, MovesTheRightBytes) {
  for (auto [ranks, devices] :
       {std::pair(2, 2), {2, 4}, {2, 3}, {3, 3}, {3, 7}})
    for (bool eager : {false, true})
      for (int32_t delay : {0, 40}) {
        build(ranks, devices);
        hub->eager = eager;
        hub->longestDelay = delay;
        run([&](Session &session) { expectRing(session, 5); });
        EXPECT_EQ(0, hub->wrong);
        for (int32_t rank = 0; rank < ranks; ++rank) {
          EXPECT_EQ("", createErrors[rank]);
          EXPECT_EQ("", followErrors[rank]);
        }
      }
}

TEST_F(RanksTest, MovesTheRightBytesOverSockets) {
  for (auto [ranks, devices] :
       {std::pair(2, 2), {2, 4}, {2, 3}, {3, 3}, {3, 7}}) {
    build(ranks, devices, /*overSockets=*/true);
    // A second session on the same connections.
    for (int session = 0; session < 2; ++session)
      run([&](Session &each) { expectRing(each, 5); });
    for (int32_t rank = 0; rank < ranks; ++rank) {
      EXPECT_EQ("", createErrors[rank]);
      EXPECT_EQ("", followErrors[rank]);
    }
  }
}

TEST_F(RanksTest, MovesLongMessagesInPieces) {
  for (int64_t piece : {1, 300, 500, 999})
    for (bool eager : {false, true}) {
      build(2, 3);
      hub->eager = eager;
      hub->longestDelay = 10;
      for (auto &member : members)
        static_cast<LoopbackTransport &>(member->transport()).mostBytes = piece;
      run([&](Session &session) { expectRing(session, 2); });
      EXPECT_EQ(0, hub->wrong);
      // Two steps of two queues between the ranks.
      EXPECT_GE(hub->met, 2 * 2 * messages * ((bytes + piece - 1) / piece));
      EXPECT_EQ("", createErrors[0]);
      EXPECT_EQ("", followErrors[1]);
    }
}

TEST_F(RanksTest, DividesDevicesIntoBlocks) {
  build(2, 5);
  std::vector<int32_t> owners;
  for (size_t device = 0; device < 5; ++device)
    owners.push_back(members[0]->ownerOf(device, 5));
  EXPECT_EQ((std::vector<int32_t>{0, 0, 0, 1, 1}), owners);
}

TEST_F(RanksTest, ARankMayHaveNothingToDo) {
  for (size_t idle : {0, 1}) {
    build(2, 2);
    program = makeProgram(2);
    program.devices[idle].operators.clear();
    program.devices[idle].arenaBytes = 0;
    bodies[0] = bodies[1] = doNothing;
    run([&](Session &session) {
      for (int step = 0; step < 3; ++step)
        EXPECT_SUCCESS(session.step());
    });
    EXPECT_EQ("", followErrors[1]);
  }
}

TEST_F(RanksTest, TellsTheTimesOfAllDevices) {
  build(2, 4);
  run([&](Session &session) {
    for (int step = 0; step < 3; ++step) {
      ASSERT_SUCCESS(session.step());
      const Timeline &timeline = session.timeline();
      for (const DeviceRecord &device : timeline.devices) {
        EXPECT_EQ(messages * bytes, device.bytesSent);
        EXPECT_GT(device.busyNs, 0);
        for (const Interval &interval : device.operators)
          EXPECT_TRUE(interval.happened());
      }
      for (const auto &queue : timeline.queues)
        for (const CopyRecord &copy : queue)
          EXPECT_TRUE(copy.happened());
    }
  });
}

TEST_F(RanksTest, TheTimelineCanBeSwitchedOff) {
  build(2, 2);
  options.timeline = false;
  run([&](Session &session) { expectRing(session, 3); });
}

TEST_F(RanksTest, FailuresReachAllRanksAndANewSessionGoesOn) {
  for (int32_t culprit : {0, 1}) {
    build(2, 2);
    bodies[culprit] = [](Context context, char *) {
      baechi_operator_begin(context, 1);
      return baechi_fail(context, "out of memory");
    };
    std::string number = std::to_string(culprit);
    run([&](Session &session) {
      EXPECT_EQ("rank " + number + ": device host" + number +
                    ", in operator 1 'b': out of memory",
                session.step().message());
      EXPECT_FALSE(session.usable());
      EXPECT_THAT(session.step().message(), HasSubstr("create a new one"));
    });
    EXPECT_EQ("", followErrors[1]);
    bodies[culprit] = ringBody(culprit, 2);
    run([&](Session &session) { expectRing(session, 3); });
    EXPECT_EQ("", createErrors[0] + createErrors[1] + followErrors[1]);
  }
}

TEST_F(RanksTest, NamesAMessageThatIsNotSent) {
  build(2, 2);
  bodies[1] = doNothing;
  run([&](Session &session) {
    EXPECT_EQ("rank 1: message 0 'm0' of queue 0 (host0 to host1) was neither "
              "sent nor received",
              session.step().message());
  });
}

TEST_F(RanksTest, NamesADeviceLeftBehind) {
  build(2, 2);
  options.abortGraceSeconds = 0.2;
  // The thread outlives its session.
  static std::atomic<bool> go{false}, gone{false};
  bodies[1] = [](Context context, char *) {
    baechi_operator_begin(context, 0);
    while (!go)
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    gone = true;
    return 1;
  };
  bodies[0] = [](Context context, char *) {
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    return baechi_fail(context, "no");
  };
  run([&](Session &session) {
    EXPECT_EQ("rank 0: device host0, before its first operator: no; a device "
              "elsewhere is still inside a kernel",
              session.step().message());
  });
  go = true;
  while (!gone)
    std::this_thread::yield();
}

TEST_F(RanksTest, RefusesRanksThatDiffer) {
  build(2, 2);
  otherProgram = program;
  otherProgram->queues[0].messages[2].bytes = 8;
  run([](Session &) { FAIL() << "the session was created"; });
  EXPECT_THAT(createErrors[0],
              StartsWith("the ranks differ in queue 0: rank 0 has 0 to 1, 6 "
                         "messages, their sizes hash "));
  EXPECT_EQ(createErrors[0], createErrors[1]);
}

TEST_F(RanksTest, WhatFailsOnOneRankFailsOnAll) {
  build(2, 2);
  otherProgram = program;
  otherProgram->devices[1].entry = "nowhere";
  run([](Session &) { FAIL() << "the session was created"; });
  EXPECT_EQ("rank 1: device host1: the program has no symbol 'nowhere'",
            createErrors[0]);
  EXPECT_EQ(createErrors[0], createErrors[1]);
}

TEST_F(RanksTest, ARankThatCannotLoadTheProgramDeclines) {
  build(2, 2);
  std::thread follower([&] {
    EXPECT_EQ(
        "rank 1: no memory for code",
        Session::decline(*members[1], Error("no memory for code")).message());
  });
  auto session = Session::create(program, resolveBody, optionsOf(0));
  follower.join();
  ASSERT_FALSE(session);
  EXPECT_EQ("rank 1: no memory for code", session.error().message());
}

TEST_F(RanksTest, RefusesMoreRanksThanDevices) {
  build(3, 2);
  run([](Session &) { FAIL() << "the session was created"; });
  EXPECT_EQ("rank 0: the program has 2 devices for 3 ranks: start no more "
            "ranks than devices",
            createErrors[0]);
}

TEST_F(RanksTest, RefusesWhatTheTransportCannotCarry) {
  build(2, 2);
  static_cast<LoopbackTransport &>(members[0]->transport()).mostTags = 10;
  run([](Session &) { FAIL() << "the session was created"; });
  EXPECT_THAT(createErrors[1], HasSubstr("more than can be told apart"));
}

TEST_F(RanksTest, RefusesDevicesWithoutData) {
  build(2, 2);
  program.devices[1].kind = "null";
  run([](Session &) { FAIL() << "the session was created"; });
  EXPECT_EQ("rank 0: device host1 of kind 'null' holds no data that it could "
            "exchange with another process",
            createErrors[0]);
}

TEST_F(RanksTest, EveryFailureOfTheTransportEndsInAnError) {
  // Some thousand calls make up creation and two steps; what comes once comes
  // early.
  bool failed = true;
  for (int64_t call = 1; failed && call < 100000; call = call * 5 / 4 + 1) {
    build(2, 2);
    options.abortGraceSeconds = 0.2;
    for (auto &member : members)
      member->setSilence(0.5);
    hub->failingCall = call;
    std::string said;
    run([&](Session &session) {
      for (int step = 0; step < 2 && said.empty(); ++step)
        said = session.step().message();
    });
    for (const auto &errors : {createErrors, followErrors})
      for (const std::string &error : errors)
        said += error;
    failed = !said.empty();
  }
}

TEST_F(RanksTest, OnlyFollowersFollow) {
  build(2, 2);
  run([](Session &session) {
    EXPECT_EQ("only a session of several ranks has a leader to follow",
              session.follow().message());
  });
}

TEST_F(RanksTest, TheLeaderDismissesTheOthers) {
  build(2, 2);
  run([&](Session &session) {
    EXPECT_SUCCESS(session.step());
    members[0]->dismiss();
  });
  EXPECT_TRUE(members[1]->dismissed());
  EXPECT_EQ("", followErrors[1]);
}

} // namespace

//===- RankLossTest.cpp - Ranks that end, or say nothing ------------------===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "RankRing.h"

#include <chrono>
#include <thread>

using namespace baechi::runtime;
using namespace baechi::runtime::test;
using testing::HasSubstr;
using testing::StartsWith;

namespace {

class RankLossTest : public RankRing {};

TEST_F(RankLossTest, ALostRankEndsTheStep) {
  for (int32_t lost : {1, 2}) {
    build(3, 3);
    bodies[lost] = [&, lost](Context context, char *) {
      baechi_operator_begin(context, 0);
      hub->killed = lost;
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
      return 1;
    };
    run([&](Session &session) {
      EXPECT_THAT(session.step().message(),
                  StartsWith("rank " + std::to_string(lost) +
                             " was lost: its process has ended; it held host" +
                             std::to_string(lost)));
      EXPECT_TRUE(members[0]->broken());
      EXPECT_FALSE(session.usable());
    });
  }
}

TEST_F(RankLossTest, ALostLeaderEndsTheOthers) {
  build(2, 2);
  bodies[0] = [&](Context context, char *) {
    baechi_operator_begin(context, 0);
    hub->killed = 0;
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    return 1;
  };
  run([&](Session &session) { EXPECT_NE("", session.step().message()); });
  EXPECT_EQ("rank 0 was lost", followErrors[1].substr(0, 15));
}

TEST_F(RankLossTest, ASilentRankIsGivenUp) {
  build(2, 2);
  for (auto &member : members)
    member->setSilence(0.6);
  bodies[1] = [&](Context context, char *arena) {
    hub->silenced = 1;
    return ringBody(1, 2)(context, arena);
  };
  run([&](Session &session) {
    EXPECT_THAT(
        session.step().message(),
        StartsWith("rank 1 was lost: it has said nothing for 1 seconds: its "
                   "process was stopped, or it cannot be reached; it held "
                   "host1; meanwhile host0 waits to receive"));
  });
}

TEST_F(RankLossTest, ASilentLeaderIsNotWaitedFor) {
  build(2, 2);
  options.watchdogSeconds = options.abortGraceSeconds = 0.3;
  bodies[0] = [&](Context context, char *arena) {
    hub->silenced = 0;
    return ringBody(0, 2)(context, arena);
  };
  run([&](Session &session) {
    EXPECT_NE("", session.step().message());
    members[0]->setLost(1); // its process ends
  });
  EXPECT_THAT(followErrors[1], HasSubstr("; rank 0 does not answer"));
}

TEST_F(RankLossTest, ProgressElsewhereKeepsTheWatchdogQuiet) {
  build(2, 2);
  options.watchdogSeconds = 1;
  bodies[1] = [&](Context context, char *arena) {
    for (int i = 0; i < 40; ++i) {
      baechi_operator_begin(context, 0);
      std::this_thread::sleep_for(std::chrono::milliseconds(50));
      baechi_operator_end(context, 0);
    }
    return ringBody(1, 2)(context, arena);
  };
  run([&](Session &session) { EXPECT_SUCCESS(session.step()); });
}

} // namespace

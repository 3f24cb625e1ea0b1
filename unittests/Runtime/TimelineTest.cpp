//===- TimelineTest.cpp - What a step says it did -------------------------===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "TestPrograms.h"

using namespace baechi::runtime;
using namespace baechi::runtime::test;

namespace {

/// Device 0 computes a, sends to device 1, which then computes b.
Program pipeline() {
  Program program = makeProgram(2);
  addQueue(program, 0, 1, {100, 28});
  return program;
}

std::vector<Body> pipelineBodies() {
  return {[](Context context, char *arena) {
            baechi_operator_begin(context, 0);
            baechi_operator_end(context, 0);
            return sendAndWait(context, 0, 0, arena) ||
                   sendAndWait(context, 0, 1, arena + 128);
          },
          [](Context context, char *arena) {
            if (recvAndWait(context, 0, 0, arena) ||
                recvAndWait(context, 0, 1, arena + 128))
              return 1;
            baechi_operator_begin(context, 1);
            baechi_operator_end(context, 1);
            return 0;
          }};
}

TEST(Timeline, FollowsTheStep) {
  auto session = makeSession(pipeline(), pipelineBodies());
  ASSERT_TRUE(session);
  for (int step = 0; step < 20; ++step) {
    ASSERT_SUCCESS(session->step());
    const Timeline &timeline = session->timeline();
    ASSERT_EQ(2u, timeline.devices.size());
    ASSERT_EQ(1u, timeline.queues.size());
    ASSERT_EQ(2u, timeline.queues[0].size());
    const Interval &a = timeline.devices[0].operators[0];
    const Interval &b = timeline.devices[1].operators[1];
    const CopyRecord &first = timeline.queues[0][0];
    const CopyRecord &second = timeline.queues[0][1];
    for (const Interval *interval :
         {&a, &b, static_cast<const Interval *>(&first),
          static_cast<const Interval *>(&second)})
      ASSERT_TRUE(interval->happened());
    EXPECT_LE(a.endNs, first.beginNs);
    EXPECT_LE(first.endNs, second.beginNs);
    EXPECT_LE(second.endNs, b.beginNs);
    EXPECT_LE(b.endNs, timeline.wallNs);
    // The others did not run.
    EXPECT_FALSE(timeline.devices[0].operators[1].happened());
    EXPECT_FALSE(timeline.devices[1].operators[0].happened());
    EXPECT_EQ(a.durationNs(), timeline.devices[0].busyNs);
    EXPECT_EQ(b.durationNs(), timeline.devices[1].busyNs);
    EXPECT_EQ(128, timeline.devices[0].bytesSent);
    EXPECT_EQ(0, timeline.devices[1].bytesSent);
  }
}

TEST(Timeline, SaysWhoCopied) {
  // Device 1 awaits message 0 after device 0 did, and the reverse for 1. The
  // first is too large to be copied ahead.
  Program program = makeProgram(2, int64_t(1) << 20);
  addQueue(program, 0, 1, {int64_t(1) << 19, 4});
  addQueue(program, 1, 0, {0});
  auto session =
      makeSession(program, {[](Context context, char *arena) {
                              if (sendAndWait(context, 0, 0, arena) ||
                                  baechi_send(context, 0, 1, arena) ||
                                  recvAndWait(context, 1, 0, arena + 64))
                                return 1;
                              return baechi_await_send(context, 0, 1);
                            },
                            [](Context context, char *arena) {
                              if (baechi_recv(context, 0, 0, arena) ||
                                  recvAndWait(context, 0, 1, arena + 64) ||
                                  sendAndWait(context, 1, 0, arena + 128))
                                return 1;
                              return baechi_await_recv(context, 0, 0);
                            }});
  ASSERT_TRUE(session);
  ASSERT_SUCCESS(session->step());
  EXPECT_FALSE(session->timeline().queues[0][0].byReceiver);
  EXPECT_TRUE(session->timeline().queues[0][1].byReceiver);
}

TEST(Timeline, SwitchedOffStillCountsBytes) {
  SessionOptions options;
  options.timeline = false;
  auto session = makeSession(pipeline(), pipelineBodies(), options);
  ASSERT_TRUE(session);
  ASSERT_SUCCESS(session->step());
  const Timeline &timeline = session->timeline();
  EXPECT_FALSE(timeline.devices[0].operators[0].happened());
  EXPECT_FALSE(timeline.queues[0][0].happened());
  EXPECT_EQ(0, timeline.devices[0].busyNs);
  EXPECT_EQ(128, timeline.devices[0].bytesSent);
}

TEST(Timeline, AFailedStepShowsWhatHappened) {
  auto entries = pipelineBodies();
  entries[0] = [](Context context, char *arena) {
    baechi_operator_begin(context, 0);
    baechi_operator_end(context, 0);
    if (sendAndWait(context, 0, 0, arena))
      return 1;
    baechi_operator_begin(context, 1);
    return baechi_fail(context, "no more");
  };
  auto session = makeSession(pipeline(), entries);
  ASSERT_TRUE(session);
  EXPECT_EQ("device host0, in operator 1 'b': no more",
            session->step().message());
  const Timeline &timeline = session->timeline();
  EXPECT_TRUE(timeline.devices[0].operators[0].happened());
  EXPECT_FALSE(timeline.devices[0].operators[1].happened());
  EXPECT_TRUE(timeline.queues[0][0].happened());
  EXPECT_FALSE(timeline.queues[0][1].happened());
  EXPECT_EQ(100, timeline.devices[0].bytesSent);
}

} // namespace

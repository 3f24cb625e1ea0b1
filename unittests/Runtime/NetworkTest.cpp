//===- NetworkTest.cpp - Links that take their time -----------------------===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// What a simulated network promises: bytes, order, and the least time. That a
/// machine is late is no error, so nothing is said of the most.
///
//===----------------------------------------------------------------------===//

#include "TestPrograms.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <atomic>
#include <functional>
#include <thread>

using namespace baechi::runtime;
using namespace baechi::runtime::test;
using testing::HasSubstr;

namespace {

constexpr int64_t bytes = 1024;
constexpr int64_t ms = 1'000'000;

int32_t receiveAll(Context context, int32_t queue, int32_t count, char *to) {
  for (int32_t seq = 0; seq < count; ++seq)
    if (baechi_recv(context, queue, seq, to + seq * bytes))
      return 1;
  for (int32_t seq = 0; seq < count; ++seq)
    if (baechi_await_recv(context, queue, seq))
      return 1;
  return 0;
}

/// Two devices; the first sends so many messages over one link.
Program makeLinked(size_t messages, SimulatedLink link) {
  Program program = makeProgram(2, int64_t(messages) * bytes);
  addQueue(program, 0, 1, std::vector<int64_t>(messages, bytes));
  program.queues[0].link = std::move(link);
  addArgument(program, 0, 0, int64_t(messages) * bytes);
  addResult(program, 1, 0, int64_t(messages) * bytes);
  return program;
}

Body sendAll(int32_t count) {
  return [count](Context context, char *arena) {
    for (int32_t seq = 0; seq < count; ++seq)
      if (baechi_send(context, 0, seq, arena + seq * bytes))
        return 1;
    return 0;
  };
}

Body takeAll(int32_t count) {
  return [count](Context context, char *arena) {
    return receiveAll(context, 0, count, arena);
  };
}

TEST(Network, TransfersTakeLatencyAndBytes) {
  SimulatedLink link{500, 3, {}};
  EXPECT_EQ(link.transferNs(0), 500);
  EXPECT_EQ(link.transferNs(1), 500 + 334);
  EXPECT_EQ(link.transferNs(3), 500 + 1000);
  EXPECT_EQ(link.transferNs(int64_t(1) << 50), 500 + 375299968947541334);
}

TEST(Network, BytesArriveAfterTheLinksTime) {
  constexpr int32_t count = 8;
  // One lane: the bytes follow each other, and others move in the latency.
  constexpr int64_t bytesNs = 1000 * bytes;
  SimulatedLink link{2 * ms - bytesNs, 1, {0}};
  auto session =
      makeSession(makeLinked(count, link), {sendAll(count), takeAll(count)});
  ASSERT_TRUE(session);
  std::vector<char> sent(count * bytes), got(sent.size());
  for (int step = 0; step < 5; ++step) {
    for (size_t i = 0; i < sent.size(); ++i)
      sent[i] = char(i * 7 + size_t(step));
    ASSERT_SUCCESS(session->setArgument(0, sent.data(), sent.size()));
    ASSERT_SUCCESS(session->step());
    ASSERT_SUCCESS(session->getResult(0, got.data(), got.size()));
    EXPECT_EQ(got, sent);
    EXPECT_GE(session->timeline().wallNs, count * bytesNs + link.latencyNs);
    std::vector<CopyRecord> copies = session->timeline().queues[0];
    std::sort(copies.begin(), copies.end(),
              [](auto &a, auto &b) { return a.beginNs < b.beginNs; });
    for (size_t i = 0; i < copies.size(); ++i) {
      EXPECT_EQ(copies[i].durationNs(), 2 * ms);
      EXPECT_GE(copies[i].beginNs,
                i ? copies[i - 1].endNs - link.latencyNs : 0);
    }
  }
}

TEST(Network, CountsWhatLanesMoveWhileMessagesWait) {
  // The bytes of each take 1.024 ms.
  SimulatedLink link{976'000, 1, {0}};
  static constexpr int64_t rest = 30 * ms;
  auto session = makeSession(
      makeLinked(4, link),
      {[](Context context, char *arena) {
         for (int32_t seq = 0; seq < 4; ++seq) {
           if (baechi_send(context, 0, seq, arena + seq * bytes))
             return 1;
           if (seq == 2) {
             for (int32_t sent = 0; sent < 3; ++sent)
               if (baechi_await_send(context, 0, sent))
                 return 1;
             std::this_thread::sleep_for(std::chrono::nanoseconds(rest));
           }
         }
         return 0;
       },
       takeAll(4)});
  ASSERT_TRUE(session);
  for (int step = 0; step < 3; ++step) {
    ASSERT_SUCCESS(session->step());
    const Timeline &timeline = session->timeline();
    ASSERT_EQ(timeline.lanes.size(), 1u);
    EXPECT_EQ(timeline.lanes[0].usedNs, 4 * bytes * 1000);
    EXPECT_GE(timeline.lanes[0].waitedNs, 4 * bytes * 1000);
    EXPECT_LE(timeline.lanes[0].waitedNs, timeline.wallNs - rest);
  }
  // Of all steps that overlap together.
  ASSERT_SUCCESS(session->steps(3));
  EXPECT_EQ(session->timeline().lanes[0].usedNs, 12 * bytes * 1000);
  EXPECT_LE(session->timeline().lanes[0].waitedNs,
            session->timeline().wallNs - 3 * rest);
}

TEST(Network, WithoutLanesMessagesMoveAtOnce) {
  constexpr int32_t count = 8;
  SimulatedLink link{20 * ms, 1'000'000, {}};
  auto session =
      makeSession(makeLinked(count, link), {sendAll(count), takeAll(count)});
  ASSERT_TRUE(session);
  ASSERT_SUCCESS(session->step());
  EXPECT_GE(session->timeline().wallNs, 20 * ms);
  int64_t sum = 0;
  for (const CopyRecord &copy : session->timeline().queues[0])
    sum += copy.durationNs();
  EXPECT_GE(sum, count * 20 * ms);
}

TEST(Network, WhatThePlanStartsFirstGoesFirst) {
  // The first one has the lane for 50 ms, in which the others are offered.
  constexpr int32_t count = 4;
  constexpr int64_t large = 50'000;
  Program program = makeProgram(2, large);
  addQueue(program, 0, 1, {large, bytes, bytes, bytes});
  program.queues[0].link = SimulatedLink{0, 1, {0}};
  for (int32_t seq = 0; seq < count; ++seq)
    program.queues[0].messages[size_t(seq)].startNs =
        program.queues[0].messages[size_t(seq)].endNs = count - seq;
  auto session = makeSession(std::move(program),
                             {[](Context context, char *arena) {
                                for (int32_t seq = 0; seq < count; ++seq)
                                  if (baechi_send(context, 0, seq, arena))
                                    return 1;
                                return 0;
                              },
                              [](Context context, char *arena) {
                                for (int32_t seq = 0; seq < count; ++seq)
                                  if (baechi_recv(context, 0, seq, arena))
                                    return 1;
                                for (int32_t seq = 0; seq < count; ++seq)
                                  if (baechi_await_recv(context, 0, seq))
                                    return 1;
                                return 0;
                              }});
  ASSERT_TRUE(session);
  ASSERT_SUCCESS(session->step());
  const std::vector<CopyRecord> &copies = session->timeline().queues[0];
  EXPECT_LT(copies[0].beginNs, copies[3].beginNs);
  EXPECT_LT(copies[3].beginNs, copies[2].beginNs);
  EXPECT_LT(copies[2].beginNs, copies[1].beginNs);
}

TEST(Network, QueuesShareALane) {
  Program program = makeProgram(3);
  for (int32_t to : {1, 2}) {
    addQueue(program, 0, to, {bytes});
    program.queues.back().link = SimulatedLink{0, 1, {0, to}};
  }
  auto take = [](int32_t queue) {
    return [queue](Context context, char *arena) {
      return receiveAll(context, queue, 1, arena);
    };
  };
  auto session = makeSession(std::move(program),
                             {[](Context context, char *arena) {
                                return baechi_send(context, 0, 0, arena) ||
                                       baechi_send(context, 1, 0, arena);
                              },
                              take(0), take(1)});
  ASSERT_TRUE(session);
  for (int step = 0; step < 3; ++step) {
    ASSERT_SUCCESS(session->step());
    CopyRecord one = session->timeline().queues[0][0],
               other = session->timeline().queues[1][0];
    EXPECT_TRUE(one.endNs <= other.beginNs || other.endNs <= one.beginNs);
  }
}

TEST(Network, NoneWaitsForALaneInItsLatency) {
  Program program = makeProgram(3);
  int64_t latency[] = {200 * ms, 1 * ms};
  for (int32_t to : {1, 2}) {
    addQueue(program, 0, to, {bytes});
    program.queues.back().link = SimulatedLink{latency[to - 1], 1, {0, to}};
  }
  auto take = [](int32_t queue) {
    return [queue](Context context, char *arena) {
      return receiveAll(context, queue, 1, arena);
    };
  };
  // The second one is offered while the first one is on its way.
  auto session = makeSession(
      std::move(program),
      {[](Context context, char *arena) {
         if (baechi_send(context, 0, 0, arena))
           return 1;
         std::this_thread::sleep_for(std::chrono::milliseconds(100));
         return int32_t(baechi_send(context, 1, 0, arena));
       },
       take(0), take(1)});
  ASSERT_TRUE(session);
  ASSERT_SUCCESS(session->step());
  const LaneRecord &shared = session->timeline().lanes[0];
  EXPECT_EQ(shared.usedNs, 2 * 1000 * bytes);
  // Else it has all of the 100 ms.
  EXPECT_LT(shared.waitedNs, 90 * ms);
}

TEST(Network, AFailedStepLeavesNothingOnTheWay) {
  constexpr int32_t count = 4;
  std::atomic<bool> fails{true};
  auto session =
      makeSession(makeLinked(count, {5 * ms, 1'000'000, {0}}),
                  {[&](Context context, char *arena) {
                     if (sendAll(count)(context, arena))
                       return 1;
                     return fails ? baechi_fail(context, "asked to") : 0;
                   },
                   takeAll(count)});
  ASSERT_TRUE(session);
  std::vector<char> sent(count * bytes, 3), got(sent.size());
  ASSERT_SUCCESS(session->setArgument(0, sent.data(), sent.size()));
  for (int step = 0; step < 6; ++step) {
    fails = step % 2 == 0;
    Error error = session->step();
    EXPECT_EQ(bool(error), fails) << error.message();
    if (error)
      continue;
    ASSERT_SUCCESS(session->getResult(0, got.data(), got.size()));
    EXPECT_EQ(got, sent);
  }
}

TEST(Network, WhatCannotBeDelayedIsRefused) {
  Program program = makeLinked(1, {1, 1, {}});
  program.queues[0].messages[0].lent = true;
  EXPECT_THAT(program.check().message(),
              HasSubstr("a simulated link moves it"));
  program = makeLinked(1, {1, 0, {}});
  EXPECT_THAT(program.check().message(), HasSubstr("bytes_per_us"));
  program = makeLinked(1, {1, 1, {}});
  program.devices[1].kind = "cuda";
  EXPECT_THAT(program.check().message(), HasSubstr("is between host devices"));
}

} // namespace

//===- PulseTest.cpp - Whether other ranks live ---------------------------===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "SocketRanks.h"

#include "Baechi/Runtime/Ranks.h"
#include "ranks/Pulse.h"
#include "transport/sockets/MeetPulse.h"

#include <gmock/gmock.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <csignal>

using namespace baechi::runtime;
using namespace baechi::runtime::test;
using testing::HasSubstr;
using testing::StartsWith;

namespace {

void sleepFor(double seconds) {
  std::this_thread::sleep_for(std::chrono::duration<double>(seconds));
}

/// What becomes of it within a minute.
int32_t lostOf(const Pulse &pulse) {
  for (int look = 0; look < 60000 && pulse.lostRank() < 0; ++look)
    sleepFor(0.001);
  return pulse.lostRank();
}

std::array<int, 2> pairOfSockets() {
  std::array<int, 2> ends{};
  EXPECT_EQ(0,
            socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, ends.data()));
  return ends;
}

/// Rank 0 and others, each connected to it.
std::vector<std::unique_ptr<Pulse>> pulsesOf(int32_t ranks, double silence) {
  std::vector<std::unique_ptr<Pulse>> all;
  for (int32_t rank = 0; rank < ranks; ++rank)
    all.push_back(std::make_unique<Pulse>(rank, ranks, silence));
  for (int32_t rank = 1; rank < ranks; ++rank) {
    std::array<int, 2> ends = pairOfSockets();
    all[0]->add(rank, ends[0]);
    all[size_t(rank)]->add(0, ends[1]);
  }
  return all;
}

TEST(Pulse, WhoOnlyComputesIsNotLost) {
  auto all = pulsesOf(2, 2);
  sleepFor(2.6);
  EXPECT_EQ(-1, all[0]->lostRank());
  EXPECT_EQ(-1, all[1]->lostRank());
}

TEST(Pulse, WhoSaysNothingIsLostAndToldSo) {
  Pulse pulse(0, 2, 0.5);
  std::array<int, 2> ends = pairOfSockets();
  pulse.add(1, ends[0]);
  EXPECT_EQ(1, lostOf(pulse));
  EXPECT_THAT(pulse.whyLost(1), HasSubstr("it has said nothing for"));
  // Once it goes on, it knows.
  Pulse other(1, 2, 0.5);
  other.add(0, ends[1]);
  EXPECT_EQ(0, lostOf(other));
  EXPECT_THAT(other.whyLost(0), StartsWith("it has given up this rank"));
}

TEST(Pulse, NobodyIsGivenUpWithoutALimit) {
  Pulse pulse(0, 2, 0);
  std::array<int, 2> ends = pairOfSockets();
  pulse.add(1, ends[0]);
  sleepFor(0.8);
  EXPECT_EQ(-1, pulse.lostRank());
  pulse.setSilence(0.3);
  EXPECT_EQ(1, lostOf(pulse));
  close(ends[1]);
}

TEST(Pulse, SaysWhichSignalHasEndedAProcess) {
  auto all = pulsesOf(3, 10);
  all[2]->sayEnding(SIGTERM);
  all[2].reset();
  for (int32_t rank : {0, 1}) {
    EXPECT_EQ(2, lostOf(*all[size_t(rank)]));
    EXPECT_EQ("its process was ended by SIGTERM",
              all[size_t(rank)]->whyLost(2));
  }
}

TEST(Pulse, RankZeroTellsTheOthersWhoWasLost) {
  auto all = pulsesOf(3, 10);
  all[1].reset();
  for (int32_t rank : {0, 2}) {
    EXPECT_EQ(1, lostOf(*all[size_t(rank)]));
    EXPECT_EQ("its process has ended", all[size_t(rank)]->whyLost(1));
  }
}

TEST(Pulse, WhoLeavesIsNotLost) {
  auto all = pulsesOf(3, 10);
  for (size_t rank : {1, 0}) {
    all[rank]->leave();
    all[rank].reset();
  }
  sleepFor(0.4);
  EXPECT_EQ(-1, all[2]->lostRank());
}

//===----------------------------------------------------------------------===//
// Of ranks
//===----------------------------------------------------------------------===//

/// Each rank's errors of the start.
std::vector<std::string> startAll(std::vector<std::shared_ptr<Ranks>> &members,
                                  double silence, int32_t stopped = -1) {
  for (auto &transport : connectAll(meetingsOf(int32_t(3)))) {
    members.push_back(std::make_shared<Ranks>(std::move(*transport)));
    members.back()->setSilence(silence);
  }
  std::vector<std::string> errors(members.size());
  std::vector<std::thread> threads;
  for (size_t rank = 0; rank < members.size(); ++rank)
    if (int32_t(rank) != stopped)
      threads.emplace_back([&, rank] {
        errors[rank] = startPulse(*members[rank], "localhost").message();
      });
  for (std::thread &thread : threads)
    thread.join();
  return errors;
}

TEST(RanksPulse, WhoWaitsBetweenStepsIsToldOfALoss) {
  std::vector<std::shared_ptr<Ranks>> members;
  for (const std::string &error : startAll(members, 10))
    ASSERT_EQ("", error);
  std::string told;
  std::thread waits([&] { told = members[1]->receive(0).error().message(); });
  sleepFor(0.1);
  members[0]->sayEnding(SIGINT);
  waits.join();
  EXPECT_EQ("rank 0 was lost: its process was ended by SIGINT", told);
  EXPECT_TRUE(members[1]->broken());
}

TEST(RanksPulse, ARankThatStopsAsRanksMeetIsNamed) {
  for (int32_t stopped : {0, 2}) {
    std::vector<std::shared_ptr<Ranks>> members;
    std::vector<std::string> errors = startAll(members, 0.5, stopped);
    EXPECT_THAT(errors[stopped == 0 ? 1 : 0],
                StartsWith("rank " + std::to_string(stopped) +
                           " was lost: it has said nothing for"));
  }
}

} // namespace

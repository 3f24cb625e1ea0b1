//===- RankSleepTest.cpp - When the thread between ranks may sleep --------===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "RankThreads.h"

#include <gtest/gtest.h>

#include <chrono>
#include <numeric>

using namespace baechi::runtime;
using namespace baechi::runtime::test;

namespace {

/// What a transport's user does between its waits.
struct Waits {
  std::atomic<int64_t> most{0};    ///< messages that were under way at once
  std::atomic<int64_t> atOnce{0};  ///< waits that a message did not allow
  std::atomic<int64_t> ignored{0}; ///< messages that a whole look left there
};

class WatchedTransport final : public Transport {
public:
  WatchedTransport(std::unique_ptr<Transport> inner, Waits &waits)
      : inner(std::move(inner)), waits(waits) {}

  int32_t rank() const override { return inner->rank(); }
  int32_t size() const override { return inner->size(); }
  int32_t ranksHere() const override { return inner->ranksHere(); }
  bool sharesClock(int32_t rank) const override {
    return inner->sharesClock(rank);
  }
  int64_t largestBytes() const override { return inner->largestBytes(); }
  int32_t largestTag() const override { return inner->largestTag(); }
  Problem send(Ticket &ticket, int32_t to, int32_t tag, const void *data,
               int64_t bytes) override {
    count();
    return inner->send(ticket, to, tag, data, bytes);
  }
  Problem receive(Ticket &ticket, int32_t from, int32_t tag, void *data,
                  int64_t bytes) override {
    count();
    return inner->receive(ticket, from, tag, data, bytes);
  }
  Problem poll(Ticket &ticket) override {
    bool hadEnded = inner->hasEnded(ticket);
    Problem problem = inner->poll(ticket);
    underWay -= !ticket.busy;
    seen += hadEnded;
    return problem;
  }
  void abandon(Ticket &ticket) override {
    --underWay;
    inner->abandon(ticket);
  }
  int64_t ended() const override { return inner->ended(); }
  bool hasEnded(const Ticket &ticket) const override {
    return inner->hasEnded(ticket);
  }
  bool wait(std::chrono::microseconds most) override {
    waits.ignored += std::max<int64_t>(0, left - seen);
    left = inner->ended();
    seen = 0;
    waits.atOnce += left > 0;
    return inner->wait(most);
  }
  void wake() override { inner->wake(); }
  Problem renew() override { return inner->renew(); }
  int32_t endedRank() const override { return inner->lostRank(); }
  void close() override { inner->close(); }

private:
  void count() {
    if (++underWay > waits.most)
      waits.most = underWay;
  }

  const std::unique_ptr<Transport> inner;
  Waits &waits;
  int64_t underWay = 0;
  /// Of the last wait: messages that had ended. Of those since: seen.
  int64_t left = 0, seen = 0;
};

/// Many messages wait for their receivers while others go to and fro: what ends
/// among them is seen by the look that follows.
TEST(RankSleep, WhatHasEndedIsSeenAmongMany) {
  constexpr int64_t waiting = 300, rounds = 50, bytes = 64;
  Waits waits[2];
  RankThreads threads;
  threads.build(2);
  threads.members.clear();
  for (auto &transport : connectAll(meetingsOf(2)))
    threads.members.push_back(
        std::make_shared<Ranks>(std::make_unique<WatchedTransport>(
            std::move(*transport), waits[threads.members.size()])));
  threads.program = makeProgram(2, 1 << 20);
  addQueue(threads.program, 0, 1, std::vector<int64_t>(waiting, bytes));
  addQueue(threads.program, 0, 1, std::vector<int64_t>(rounds, bytes));
  addQueue(threads.program, 1, 0, std::vector<int64_t>(rounds, bytes));
  constexpr int64_t there = waiting * bytes, back = there + rounds * bytes;
  static int64_t wrong;
  wrong = 0;
  bodies[0] = [](Context self, char *arena) -> int32_t {
    std::iota(arena, arena + waiting * bytes, char(1));
    for (int32_t i = 0; i < waiting; ++i)
      if (int32_t stop = baechi_send(self, 0, i, arena + bytes * i))
        return stop;
    for (int32_t i = 0; i < rounds; ++i) {
      arena[there + bytes * i] = char(i);
      if (int32_t stop = baechi_send(self, 1, i, arena + there + bytes * i))
        return stop;
      if (int32_t stop = recvAndWait(self, 2, i, arena + back + bytes * i))
        return stop;
      wrong += arena[back + bytes * i] != char(i + 1);
    }
    for (int32_t i = 0; i < rounds; ++i)
      if (int32_t stop = baechi_await_send(self, 1, i))
        return stop;
    for (int32_t i = 0; i < waiting; ++i)
      if (int32_t stop = baechi_await_send(self, 0, i))
        return stop;
    return 0;
  };
  bodies[1] = [](Context self, char *arena) -> int32_t {
    for (int32_t i = 0; i < rounds; ++i) {
      if (int32_t stop = recvAndWait(self, 1, i, arena + there + bytes * i))
        return stop;
      arena[back + bytes * i] = char(arena[there + bytes * i] + 1);
      if (int32_t stop = baechi_send(self, 2, i, arena + back + bytes * i))
        return stop;
    }
    for (int32_t i = 0; i < waiting; ++i)
      if (int32_t stop = recvAndWait(self, 0, i, arena + bytes * i))
        return stop;
    for (int64_t i = 0; i < waiting * bytes; ++i)
      wrong += arena[i] != char(i + 1);
    for (int32_t i = 0; i < rounds; ++i)
      if (int32_t stop = baechi_await_send(self, 2, i))
        return stop;
    return 0;
  };
  threads.run([&](Session &session) {
    for (int step = 0; step < 3; ++step)
      EXPECT_FALSE(session.step()) << "in step " << step;
  });
  EXPECT_EQ("", threads.followErrors[1]);
  EXPECT_EQ(0, wrong);
  EXPECT_GT(waits[0].most, waiting);
  for (Waits &each : waits)
    EXPECT_EQ(0, each.ignored) << "of " << each.atOnce << " waits";
}

TEST(RankSleep, NobodyWaitsWhileAMessageHasEnded) {
  auto all = connectAll(meetingsOf(2));
  Transport &from = **all[0], &to = **all[1];
  constexpr size_t count = 120;
  std::vector<int64_t> sent(count), got(count);
  std::iota(sent.begin(), sent.end(), 1);
  std::vector<Ticket> sending(count), receiving(count);
  for (size_t i = 0; i < count; ++i) {
    EXPECT_FALSE(to.receive(receiving[i], 0, int32_t(i), &got[i], 8));
    EXPECT_FALSE(from.send(sending[i], 1, int32_t(i), &sent[i], 8));
  }
  EXPECT_EQ(0, to.ended());
  // One look ends others, too, and waits end at once until all are polled.
  const std::chrono::seconds long_(50);
  auto begin = std::chrono::steady_clock::now();
  auto endAll = [&](Transport &end, std::vector<Ticket> &tickets) {
    while (end.ended() < int64_t(count - 1))
      EXPECT_FALSE(end.poll(tickets[0]));
    for (Ticket &ticket : tickets) {
      if (!ticket.busy)
        continue;
      EXPECT_TRUE(end.wait(long_));
      EXPECT_TRUE(end.hasEnded(ticket));
      EXPECT_FALSE(end.poll(ticket));
      EXPECT_FALSE(ticket.busy);
      EXPECT_FALSE(end.hasEnded(ticket));
    }
    EXPECT_EQ(0, end.ended());
  };
  (void)from.poll(sending[0]); // meets the receivers
  endAll(to, receiving);
  endAll(from, sending);
  EXPECT_LT(std::chrono::steady_clock::now() - begin, long_);
  EXPECT_EQ(sent, got);
}

/// What is left of a session that has failed keeps nobody of the next one
/// awake.
TEST(RankSleep, EarlierSessionsCountNoMore) {
  auto all = connectAll(meetingsOf(2));
  int64_t sent[2] = {7, 8}, got[2] = {};
  Ticket sending[2], receiving[2];
  for (int32_t i : {0, 1}) {
    EXPECT_FALSE((*all[1])->receive(receiving[i], 0, i, &got[i], 8));
    EXPECT_FALSE((*all[0])->send(sending[i], 1, i, &sent[i], 8));
  }
  while ((*all[0])->ended() == 0)
    EXPECT_FALSE((*all[0])->poll(sending[0]));
  EXPECT_FALSE(sending[0].busy && sending[1].busy);
  EXPECT_FALSE((*all[0])->renew());
  EXPECT_EQ(0, (*all[0])->ended());
  (*all[0])->abandon(sending[1]);
  EXPECT_EQ(0, (*all[0])->ended());
  for (Ticket &ticket : receiving)
    (*all[1])->abandon(ticket);
  EXPECT_EQ(0, (*all[1])->ended());
}

} // namespace

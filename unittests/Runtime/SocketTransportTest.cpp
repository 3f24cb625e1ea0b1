//===- SocketTransportTest.cpp - Messages between processes, by TCP -*- C++
//-*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Baechi/Runtime/Ranks.h"
#include "SocketRanks.h"

#include <gmock/gmock.h>
#include <sys/socket.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <functional>
#include <random>

using namespace baechi::runtime;
using namespace baechi::runtime::test;
using testing::AllOf;
using testing::HasSubstr;
using testing::StartsWith;

namespace {

using Transports = std::vector<std::unique_ptr<Transport>>;

Transports connected(int32_t ranks) {
  Transports result;
  for (auto &each : connectAll(meetingsOf(ranks))) {
    EXPECT_TRUE(each) << each.error().message();
    result.push_back(std::move(*each));
  }
  return result;
}

/// Polls all tickets of all ranks until none is busy.
bool finish(std::vector<std::pair<Transport *, Ticket *>> tickets) {
  auto end = std::chrono::steady_clock::now() + std::chrono::seconds(60);
  while (!tickets.empty() && std::chrono::steady_clock::now() < end)
    std::erase_if(tickets, [](auto &each) {
      EXPECT_FALSE(each.first->poll(*each.second));
      return !each.second->busy;
    });
  return tickets.empty();
}

/// For a time in which all that can arrive does.
void pollFor(Transport &one, Ticket &ticket, Transport &other) {
  for (int look = 0; look < 100 && ticket.busy; ++look) {
    EXPECT_FALSE(one.poll(ticket));
    other.lostRank();
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
}

struct Sent {
  int32_t from, to, tag;
  std::vector<char> bytes, got;
  Ticket sending, receiving;
};

TEST(SocketTransport, MovesTheRightBytes) {
  std::mt19937 random(7);
  for (int32_t ranks : {2, 3, 5}) {
    Transports all = connected(ranks);
    for (int round = 0; round < 5; ++round) {
      std::vector<Sent> list;
      for (int i = 0; i < 60; ++i) {
        Sent each{};
        each.from = int32_t(random() % uint32_t(ranks));
        each.to =
            int32_t((uint32_t(each.from) + 1 + random() % uint32_t(ranks - 1)) %
                    uint32_t(ranks));
        each.tag = int32_t(random() % 4);
        each.bytes.resize(i % 7 == 0 ? 0 : random() % (i % 5 ? 3000 : 2000000));
        for (char &byte : each.bytes)
          byte = char(random());
        each.got.resize(each.bytes.size());
        list.push_back(std::move(each));
      }
      // Receives and sends are begun in turns; of one tag, in their order.
      std::vector<std::function<void()>> begins;
      for (bool sends : {false, true})
        for (Sent &each : list)
          begins.push_back([&each, &all, sends] {
            int64_t size = int64_t(each.bytes.size());
            EXPECT_FALSE(sends ? all[size_t(each.from)]->send(
                                     each.sending, each.to, each.tag,
                                     each.bytes.data(), size)
                               : all[size_t(each.to)]->receive(
                                     each.receiving, each.from, each.tag,
                                     each.got.data(), size));
          });
      for (size_t r = 0, s = list.size(); r < list.size() || s < begins.size();)
        (s == begins.size() || (r < list.size() && random() % 2)
             ? begins[r++]
             : begins[s++])();
      std::vector<std::pair<Transport *, Ticket *>> tickets;
      for (Sent &each : list) {
        tickets.emplace_back(all[size_t(each.from)].get(), &each.sending);
        tickets.emplace_back(all[size_t(each.to)].get(), &each.receiving);
      }
      ASSERT_TRUE(finish(std::move(tickets)));
      for (Sent &each : list)
        EXPECT_EQ(each.bytes, each.got);
    }
  }
}

TEST(SocketTransport, MeetsByEachNameOfThisMachine) {
  for (const char *host : {"localhost", "127.0.0.1", "::1", "0.0.0.0"}) {
    std::vector<Meeting> meetings = meetingsOf(3);
    for (Meeting &each : meetings)
      each.host = host;
    for (auto &each : connectAll(meetings))
      EXPECT_TRUE(each) << host << ": " << each.error().message();
  }
}

TEST(SocketTransport, KnowsWhoIsNear) {
  Transports all = connected(3);
  for (int32_t rank = 0; rank < 3; ++rank) {
    EXPECT_EQ(rank, all[size_t(rank)]->rank());
    EXPECT_EQ(3, all[size_t(rank)]->size());
    EXPECT_EQ(3, all[size_t(rank)]->ranksHere());
    EXPECT_TRUE(all[size_t(rank)]->sharesClock(0));
    EXPECT_EQ(-1, all[size_t(rank)]->lostRank());
  }
}

TEST(SocketTransport, AMessageThatNobodyAskedForDelaysNoOther) {
  Transports all = connected(2);
  std::vector<char> large(4 << 20, 'x'), got(100);
  std::vector<char> small(100, 'y');
  Ticket unasked, sending, receiving;
  EXPECT_FALSE(all[0]->send(unasked, 1, 1, large.data(), 4 << 20));
  EXPECT_FALSE(all[0]->send(sending, 1, 2, small.data(), 100));
  EXPECT_FALSE(all[1]->receive(receiving, 0, 2, got.data(), 100));
  ASSERT_TRUE(finish({{all[0].get(), &sending}, {all[1].get(), &receiving}}));
  EXPECT_EQ(small, got);
  EXPECT_TRUE(unasked.busy);
}

TEST(SocketTransport, WhatWasAbandonedMeetsNothingOfTheNextSession) {
  // At either end, before and while it is under way.
  for (int way = 0; way < 4; ++way) {
    Transports all = connected(2);
    constexpr int64_t bytes = 32 << 20;
    auto old = std::make_unique<std::vector<char>>(bytes, 'o');
    auto into = std::make_unique<std::vector<char>>(bytes);
    Ticket sending, receiving;
    EXPECT_FALSE(all[1]->receive(receiving, 0, 5, into->data(), bytes));
    if (way != 0)
      EXPECT_FALSE(all[0]->send(sending, 1, 5, old->data(), bytes));
    // Some of it comes across.
    for (int look = 0; look < way * 3; ++look) {
      EXPECT_FALSE(all[0]->poll(sending));
      EXPECT_FALSE(all[1]->poll(receiving));
    }
    if (sending.busy)
      all[0]->abandon(sending);
    if (way == 3)
      EXPECT_FALSE(all[0]->renew());
    if (receiving.busy)
      all[1]->abandon(receiving);
    old.reset();
    into.reset();
    // One of them begins anew long before the other.
    std::vector<char> fresh(bytes, 'f'), got(bytes);
    if (way == 3) {
      EXPECT_FALSE(all[0]->send(sending, 1, 5, fresh.data(), bytes));
      EXPECT_FALSE(all[1]->renew());
    } else {
      EXPECT_FALSE(all[1]->renew());
      EXPECT_FALSE(all[0]->renew());
      EXPECT_FALSE(all[0]->send(sending, 1, 5, fresh.data(), bytes));
    }
    EXPECT_FALSE(all[1]->receive(receiving, 0, 5, got.data(), bytes));
    ASSERT_TRUE(finish({{all[0].get(), &sending}, {all[1].get(), &receiving}}));
    EXPECT_EQ(fresh, got);
  }
}

TEST(SocketTransport, SizesThatDifferAreAnError) {
  Transports all = connected(2);
  char data[8] = {};
  Ticket sending, receiving;
  EXPECT_FALSE(all[1]->receive(receiving, 0, 0, data, 8));
  EXPECT_FALSE(all[0]->send(sending, 1, 0, data, 4));
  Problem problem;
  for (int look = 0; look < 1000 && !problem; ++look) {
    problem = all[0]->poll(sending);
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  ASSERT_TRUE(problem);
  EXPECT_STREQ("the ranks differ in a message's size", problem.reason);
}

TEST(SocketTransport, AProcessThatEndsIsNoticed) {
  Transports all = connected(3);
  char data[8] = {};
  Ticket receiving;
  EXPECT_FALSE(all[0]->receive(receiving, 2, 0, data, 8));
  all[2].reset();
  for (int rank : {0, 1})
    EXPECT_EQ(2, all[size_t(rank)]->lostRank());
  pollFor(*all[0], receiving, *all[1]);
  EXPECT_TRUE(receiving.busy);
  EXPECT_TRUE(all[0]->renew());
}

/// Were it to go at once, rank 0 would take it for the one that was lost.
TEST(SocketTransport, WhoWaitsForRank0LeavesItToTellOfOthers) {
  Transports all = connected(3);
  auto first = std::make_unique<Ranks>(std::move(all[0]));
  Ranks second(std::move(all[1]));
  all[2].reset();
  std::atomic<bool> isBack{false};
  std::string told;
  std::thread waits([&] {
    told = second.receive(0).error().message();
    isBack = true;
  });
  std::this_thread::sleep_for(std::chrono::milliseconds(100));
  EXPECT_FALSE(isBack);
  EXPECT_THAT(first->receive(1).error().message(),
              StartsWith("rank 2 was lost"));
  first.reset();
  waits.join();
  EXPECT_THAT(told, StartsWith("rank 2 was lost"));
}

TEST(SocketTransport, WhoTakesNothingIsGivenUp) {
  Transports all = connected(2);
  Ranks first(std::move(all[0]));
  first.setSilence(0.1);
  // More than sockets hold.
  EXPECT_EQ(first.send(1, std::string(64 << 20, 'x')).message(),
            "rank 1 was lost: it has taken nothing of what it was sent for 1 "
            "seconds");
  EXPECT_EQ(first.lostRank(), 1);
}

TEST(SocketTransport, WhoHasLeftIsWaitedForNoMore) {
  Transports all = connected(2);
  std::thread leaver([&] { all[1]->close(); });
  char data[8] = {};
  Ticket sending;
  Problem problem = all[0]->send(sending, 1, 0, data, 8);
  for (int look = 0; look < 10000 && !problem; ++look) {
    problem = all[0]->poll(sending);
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  EXPECT_STREQ("its process has left", problem.reason);
  all[0]->close();
  leaver.join();
}

TEST(SocketTransport, AnEndInOrderIsNoLoss) {
  Transports all = connected(3);
  std::vector<std::thread> threads;
  for (auto &each : all)
    threads.emplace_back([&each] { each->close(); });
  for (std::thread &thread : threads)
    thread.join();
  for (auto &each : all)
    EXPECT_EQ(-1, each->lostRank());
}

} // namespace

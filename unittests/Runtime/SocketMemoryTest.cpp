//===- SocketMemoryTest.cpp - Ranks that read each other's memory ---------===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "SocketRanks.h"
#include "transport/sockets/PeerMemory.h"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstring>
#include <numeric>
#include <thread>

using namespace baechi::runtime;
using namespace baechi::runtime::test;

namespace {

constexpr const char *noReading =
    "the kernel lets no process read another's memory";

bool mayRead() {
  sockets::PeerMemory memory;
  memory.meet(sockets::Proof::own());
  return memory.isReadable();
}

/// Two ranks, which may read what their meetings say.
std::vector<std::unique_ptr<Transport>> connected(bool readFirst = true,
                                                  bool readSecond = true) {
  std::vector<Meeting> meetings = meetingsOf(2);
  meetings[0].readsMemory = readFirst;
  meetings[1].readsMemory = readSecond;
  std::vector<std::unique_ptr<Transport>> result;
  for (auto &each : connectAll(meetings)) {
    EXPECT_TRUE(each) << each.error().message();
    result.push_back(std::move(*each));
  }
  return result;
}

std::vector<char> numbers(size_t bytes) {
  std::vector<char> result(bytes);
  std::iota(result.begin(), result.end(), char(1));
  return result;
}

/// Looks at both ends, in turn, until neither is under way.
bool finish(Transport &a, Ticket &atA, Transport &b, Ticket &atB) {
  auto end = std::chrono::steady_clock::now() + std::chrono::seconds(60);
  while ((atA.busy || atB.busy) && std::chrono::steady_clock::now() < end) {
    if (atA.busy)
      EXPECT_FALSE(a.poll(atA));
    if (atB.busy)
      EXPECT_FALSE(b.poll(atB));
  }
  return !atA.busy && !atB.busy;
}

TEST(PeerMemory, IsReadOnceItHasWhatItsProcessSays) {
  std::vector<char> there = numbers(1000), here(1000);
  auto address = [&] { return reinterpret_cast<uintptr_t>(there.data()); };
  sockets::PeerMemory memory;
  EXPECT_FALSE(memory.isReadable());
  EXPECT_FALSE(memory.read(here.data(), address(), 1000));
  sockets::Proof proof = sockets::Proof::own();
  memory.meet(proof);
  if (!memory.isReadable())
    GTEST_SKIP() << noReading;
  EXPECT_TRUE(memory.read(here.data(), address(), 1000));
  EXPECT_EQ(there, here);

  // Another process of that number, and one that has ended.
  sockets::Proof other = proof;
  ++other.number;
  memory.meet(other);
  EXPECT_FALSE(memory.isReadable());
  other = proof;
  other.address = 8;
  memory.meet(other);
  EXPECT_FALSE(memory.isReadable());

  // What cannot be read keeps nobody from reading the rest.
  memory.meet(proof);
  EXPECT_FALSE(memory.read(here.data(), 8, 1000));
  EXPECT_TRUE(memory.isReadable());
  std::ranges::fill(here, char(0));
  EXPECT_TRUE(memory.read(here.data(), address(), 1000));
  EXPECT_EQ(there, here);
}

TEST(PeerMemory, IsForgottenWithItsProcess) {
  sockets::Proof proof = sockets::Proof::own();
  sockets::PeerMemory memory;
  memory.meet(proof);
  if (!memory.isReadable())
    GTEST_SKIP() << noReading;
  pid_t child = fork();
  if (child == 0) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    for (;;)
      pause();
  }
  ASSERT_GT(child, 0);
  proof.process = child; // which has a copy of the number at that place
  memory.meet(proof);
  bool wasReadable = memory.isReadable();
  kill(child, SIGKILL);
  ASSERT_EQ(child, waitpid(child, nullptr, 0));
  EXPECT_TRUE(wasReadable);
  uint64_t word;
  EXPECT_FALSE(memory.read(&word, proof.address, sizeof(word)));
  EXPECT_FALSE(memory.isReadable());
}

TEST(SocketMemory, MovesTheSameBytesWhoeverMayRead) {
  for (bool readFirst : {false, true})
    for (bool readSecond : {false, true}) {
      auto all = connected(readFirst, readSecond);
      // Short, just long enough to be read, and of several pieces.
      for (size_t bytes : {100, 8 << 10, 3 << 20})
        for (int32_t from : {0, 1, 0}) {
          std::vector<char> sent = numbers(bytes), got(bytes);
          Ticket sending, receiving;
          Transport &a = *all[size_t(from)], &b = *all[size_t(1 - from)];
          EXPECT_FALSE(
              a.send(sending, 1 - from, 3, sent.data(), int64_t(bytes)));
          EXPECT_FALSE(
              b.receive(receiving, from, 3, got.data(), int64_t(bytes)));
          ASSERT_TRUE(finish(a, sending, b, receiving));
          EXPECT_EQ(sent, got);
        }
    }
}

/// Whether the second rank gets a message by itself once the first has been
/// heard: by reading, as what is sent is more than a connection holds.
bool isReadBySecond(Transport &first, Transport &second, int32_t tag) {
  std::vector<char> sent = numbers(64 << 20), got(sent.size());
  Ticket sending, receiving;
  EXPECT_FALSE(
      second.receive(receiving, 0, tag, got.data(), int64_t(got.size())));
  EXPECT_FALSE(first.send(sending, 1, tag, sent.data(), int64_t(sent.size())));
  EXPECT_FALSE(first.poll(sending));
  for (int look = 0; look < 2000 && receiving.busy; ++look)
    EXPECT_FALSE(second.poll(receiving));
  bool isRead = !receiving.busy;
  EXPECT_TRUE(finish(first, sending, second, receiving));
  EXPECT_EQ(sent, got);
  return isRead;
}

/// Two ranks that know whether they can read.
std::vector<std::unique_ptr<Transport>> acquainted(bool readFirst = true,
                                                   bool readSecond = true) {
  auto all = connected(readFirst, readSecond);
  Ticket sending, receiving;
  int64_t word = 7, heard = 0;
  EXPECT_FALSE(all[0]->send(sending, 1, 1, &word, sizeof(word)));
  EXPECT_FALSE(all[1]->receive(receiving, 0, 1, &heard, sizeof(heard)));
  EXPECT_TRUE(finish(*all[0], sending, *all[1], receiving));
  return all;
}

TEST(SocketMemory, IsReadWhereBothAllowIt) {
  if (!mayRead())
    GTEST_SKIP() << noReading;
  for (bool readFirst : {false, true})
    for (bool readSecond : {false, true}) {
      auto all = acquainted(readFirst, readSecond);
      EXPECT_EQ(readFirst && readSecond, isReadBySecond(*all[0], *all[1], 2));
    }
}

/// As a device's pinned memory, which only its own process can read.
TEST(SocketMemory, WhatCannotBeReadIsSent) {
  if (!mayRead())
    GTEST_SKIP() << noReading;
  auto all = acquainted();
  Ticket sending, receiving;
  size_t bytes = 1 << 20;
  void *place = mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                     MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(MAP_FAILED, place);
  std::vector<char> sent = numbers(bytes), got(bytes);
  std::memcpy(place, sent.data(), bytes);
  ASSERT_EQ(0, mprotect(place, bytes, PROT_NONE));
  EXPECT_FALSE(all[1]->receive(receiving, 0, 2, got.data(), int64_t(bytes)));
  EXPECT_FALSE(all[0]->send(sending, 1, 2, place, int64_t(bytes)));
  // The sender says where it lies, the receiver that it cannot read that.
  for (int look = 0; look < 100; ++look) {
    if (look == 0)
      EXPECT_FALSE(all[0]->poll(sending));
    EXPECT_FALSE(all[1]->poll(receiving));
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  EXPECT_TRUE(receiving.busy);
  ASSERT_EQ(0, mprotect(place, bytes, PROT_READ));
  ASSERT_TRUE(finish(*all[0], sending, *all[1], receiving));
  EXPECT_EQ(sent, got);
  munmap(place, bytes);
  // Others still are read.
  EXPECT_TRUE(isReadBySecond(*all[0], *all[1], 3));
}

TEST(SocketMemory, AMessageEndsAWait) {
  auto all = connected();
  const std::chrono::seconds long_(50);
  auto begin = std::chrono::steady_clock::now();
  std::vector<char> sent = numbers(3 << 20), got(sent.size());
  std::thread sender([&] {
    Ticket sending;
    EXPECT_FALSE(
        all[0]->send(sending, 1, 1, sent.data(), int64_t(sent.size())));
    for (; sending.busy; all[0]->wait(long_))
      EXPECT_FALSE(all[0]->poll(sending));
  });
  Ticket receiving;
  EXPECT_FALSE(
      all[1]->receive(receiving, 0, 1, got.data(), int64_t(got.size())));
  while (receiving.busy) {
    EXPECT_TRUE(all[1]->wait(long_));
    EXPECT_FALSE(all[1]->poll(receiving));
  }
  all[0]->wake(); // it may have ended before its last wait
  sender.join();
  EXPECT_EQ(sent, got);
  // A wake that comes before is not lost.
  all[1]->wake();
  EXPECT_TRUE(all[1]->wait(long_));
  EXPECT_LT(std::chrono::steady_clock::now() - begin, long_);
}

} // namespace

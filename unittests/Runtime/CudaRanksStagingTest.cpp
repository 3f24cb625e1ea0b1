//===- CudaRanksStagingTest.cpp - Ranks' messages through the host ---===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Two ranks, which are threads, share a GPU: their messages go through pinned
/// host memory that is used again and again.
///
//===----------------------------------------------------------------------===//

#include "Baechi/Runtime/Machine.h"
#include "CudaPrograms.h"
#include "LargeMessage.h"
#include "RankThreads.h"
#include "Sanitized.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <random>

using namespace baechi::runtime;
using namespace baechi::runtime::test;

namespace {

class CudaRanksStagingTest : public testing::Test, protected RankThreads {
protected:
  void SetUp() override {
    if (!usesFakeCuda())
      GTEST_SKIP() << "ranks that are threads share no primary context";
  }

  /// One GPU, streams that fall behind for some seeds.
  void build(uint64_t seed, bool late, fakecuda::FakeOptions fake = {}) {
    fake.seed = seed;
    fake.longestDelay = late ? 300 : 0;
    resetCuda(fake);
    RankThreads::build(2);
    hub->eager = seed % 2;
    hub->longestDelay = seed > 3 ? 40 : 0;
    options.timeline = seed % 2;
  }
  void take(Ring &ring) {
    program = ring.program;
    std::vector<Body> list = ring.bodies();
    std::move(list.begin(), list.end(), bodies);
  }

  /// Without the note of what goes through the host.
  void lead(const std::function<void(Session &)> &with) {
    testing::internal::CaptureStderr();
    run(with);
    testing::internal::GetCapturedStderr();
    for (const auto *errors : {&createErrors, &followErrors})
      for (const std::string &error : *errors)
        EXPECT_EQ("", error);
    ASSERT_EQ("", cudaMisuse());
  }
};

TEST_F(CudaRanksStagingTest, HoldsPinnedMemoryForWhatGoesThroughTheHost) {
  build(1, /*late=*/false);
  Ring ring({"cuda", "cuda"});
  take(ring);
  lead([&](Session &session) {
    // A place each for what comes and what goes.
    EXPECT_EQ(2 * ring.rounds * 64, session.stagingBytes());
  });
}

/// A chain of messages, each after the one before, of which two lie in pinned
/// memory at once: one goes on while the next comes.
TEST_F(CudaRanksStagingTest, ReusesPinnedMemoryOverTime) {
  constexpr int32_t rounds = 12;
  for (uint64_t seed = 1; seed <= 6; ++seed) {
    SCOPED_TRACE(seed);
    build(seed, /*late=*/seed % 3 == 0);
    Ring ring({"cuda", "cuda"}, /*forgets=*/false, rounds);
    for (QueueInfo &queue : ring.program.queues)
      for (int32_t round = 0; round < rounds; ++round) {
        queue.messages[size_t(round)].startNs = 100 * round;
        queue.messages[size_t(round)].endNs = 100 * round + 60;
      }
    take(ring);
    lead([&](Session &session) {
      // Two of each direction.
      EXPECT_EQ(4 * 64, session.stagingBytes());
      for (int64_t step = 0; step < 4; ++step)
        ring.stepsRight(session, step);
    });
  }
}

/// All messages of both directions have one place after the other, whatever
/// each end offers first within a group: no step stops.
TEST_F(CudaRanksStagingTest, WaitsForPinnedMemoryInTheProgramsOrder) {
  constexpr int32_t groups = 5, together = 4, count = groups * together;
  constexpr int64_t block = count * 64;
  for (uint64_t seed = 1; seed <= 8; ++seed) {
    SCOPED_TRACE(seed);
    build(seed, /*late=*/seed % 4 == 0);
    program = makeProgram(2, 2 * block);
    for (int32_t device : {0, 1}) {
      program.devices[size_t(device)].kind = "cuda";
      addQueue(program, device, 1 - device, std::vector<int64_t>(count, 64));
      for (int32_t seq = 0; seq < count; ++seq) {
        MessageInfo &message = program.queues.back().messages[size_t(seq)];
        message.group = seq / together;
        message.startNs = 1000 * (2 * seq + device);
        message.endNs = message.startNs + 10;
      }
      addArgument(program, device, 0, block);
      addResult(program, device, block, block);
    }
    for (int32_t device : {0, 1})
      bodies[device] = [device, seed](Context context, char *arena) {
        std::mt19937 random(uint32_t(2 * seed) + uint32_t(device));
        for (int32_t group = 0; group < groups; ++group) {
          std::vector<int32_t> order(2 * together);
          std::iota(order.begin(), order.end(), 0);
          auto each = [&](auto send, auto receive) {
            std::shuffle(order.begin(), order.end(), random);
            for (int32_t at : order) {
              int32_t seq = group * together + at % together;
              char *place = arena + seq * 64 + (at < together ? 0 : block);
              if (at < together ? send(context, device, seq, place)
                                : receive(context, 1 - device, seq, place))
                return false;
            }
            return true;
          };
          auto await = [](auto call) {
            return [call](Context of, int32_t queue, int32_t seq, char *) {
              return call(of, queue, seq);
            };
          };
          if (!each(baechi_send, baechi_recv) ||
              !each(await(baechi_await_send), await(baechi_await_recv)))
            return 1;
        }
        return 0;
      };
    lead([&](Session &session) {
      EXPECT_EQ(64, session.stagingBytes());
      for (int step = 0; step < 3; ++step) {
        std::vector<char> sent[2], got(block);
        for (size_t device : {0, 1}) {
          for (int64_t i = 0; i < block; ++i)
            sent[device].push_back(char(i * 7 + step + int64_t(device)));
          ASSERT_SUCCESS(
              session.setArgument(device, sent[device].data(), block));
        }
        ASSERT_SUCCESS(session.step());
        for (size_t device : {0, 1}) {
          ASSERT_SUCCESS(session.getResult(device, got.data(), block));
          ASSERT_TRUE(sent[1 - device] == got);
        }
      }
    });
  }
}

/// More than 31 bits can count: one copy each of the GPU, pieces for the
/// transport.
TEST_F(CudaRanksStagingTest, AMessageOfMoreThan2GiB) {
  if (BAECHI_SANITIZED)
    GTEST_SKIP() << "a sanitizer's shadow of it takes 10 GiB and minutes";
  if (queryHost().memoryBytes < 5 * LargeMessage::bytes)
    GTEST_SKIP() << "this machine has no memory for four times 2 GiB";
  fakecuda::FakeOptions fake;
  fake.memoryBytes = size_t(3 * LargeMessage::bytes);
  build(2, /*late=*/false, fake);
  // Where others work, copying that much takes as long as it takes.
  options.watchdogSeconds = 0;
  for (const std::shared_ptr<Ranks> &member : members)
    static_cast<LoopbackTransport &>(member->transport()).mostBytes = 1 << 30;
  program = LargeMessage::program();
  std::ranges::copy(LargeMessage::bodies(), bodies);
  lead([&](Session &session) {
    EXPECT_EQ(LargeMessage::bytes, session.stagingBytes());
    LargeMessage::arrives(session);
  });
}

} // namespace

//===- CudaLoanTest.cpp - Messages that devices of one GPU lend ---===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "CudaPrograms.h"

#include <gmock/gmock.h>

#include <numeric>

using namespace baechi::runtime;
using namespace baechi::runtime::test;
using testing::HasSubstr;

namespace {

constexpr int64_t bytes = Ring::count * int64_t(sizeof(int32_t));

/// Device 0 doubles a number round after round, in one buffer, and lends it;
/// device 1 adds up what it borrows.
struct Lender {
  explicit Lender(int32_t rounds = 6) : rounds(rounds) {
    program = makeProgram(2, 2 * Ring::slot);
    for (size_t i : {0, 1}) {
      program.devices[i].kind = "cuda";
      program.devices[i].name = "cuda" + std::to_string(i);
    }
    addQueue(program, 0, 1, std::vector<int64_t>(size_t(rounds), bytes));
    for (MessageInfo &message : program.queues[0].messages)
      message.lent = true;
    addArgument(program, 0, 0, bytes);
    addArgument(program, 1, 0, bytes);
    addResult(program, 1, 0, bytes);
  }

  int32_t lend(Context context, char *arena) const {
    for (int32_t round = 0; round < rounds; ++round) {
      launch("double_numbers", {arena + Ring::slot, arena});
      launch("double_numbers", {arena, arena + Ring::slot});
      if (baechi_send(context, 0, round, arena))
        return 1;
      if (!forgets && baechi_await_send(context, 0, round))
        return 1;
    }
    return 0;
  }
  int32_t borrow(Context context, char *arena) const {
    for (int32_t round = 0; round < rounds; ++round) {
      const void *source = nullptr;
      if (baechi_borrow(context, 0, round, &source))
        return 1;
      if (givesBackEarly && baechi_give_back(context, 0, round))
        return 1;
      launch("add_numbers", {arena, arena, const_cast<void *>(source)});
      if (!givesBackEarly && baechi_give_back(context, 0, round))
        return 1;
    }
    return 0;
  }
  auto session(SessionOptions options = {}) const {
    return makeSession(
        program,
        {[this](Context context, char *arena) { return lend(context, arena); },
         [this](Context context, char *arena) {
           return borrow(context, arena);
         }},
        std::move(options));
  }
  void stepsRight(Session &session) const {
    std::vector<int32_t> number(Ring::count), sum(Ring::count), got(sum);
    std::iota(number.begin(), number.end(), 1);
    ASSERT_SUCCESS(session.setArgument(0, number.data(), bytes));
    ASSERT_SUCCESS(session.setArgument(1, sum.data(), bytes));
    ASSERT_SUCCESS(session.step());
    for (int32_t round = 0, power = 4; round < rounds; ++round, power *= 4)
      for (size_t i = 0; i < sum.size(); ++i)
        sum[i] += power * number[i];
    ASSERT_SUCCESS(session.getResult(0, got.data(), bytes));
    ASSERT_EQ(sum, got);
  }

  Program program;
  int32_t rounds;
  /// The sender does not wait until it has its tensor back.
  bool forgets = false;
  /// The borrower reads after it gave the tensor back.
  bool givesBackEarly = false;
};

TEST(CudaLoan, EventsOrderTheStreams) {
  for (bool timeline : {true, false}) // without one, by graphs
    for (uint64_t seed = 1; seed <= 10; ++seed) {
      SCOPED_TRACE(seed);
      fakecuda::FakeOptions options;
      options.seed = seed;
      options.longestDelay = 50;
      // Nothing is copied: no stream but the two of the devices is asked to.
      resetCuda(options);
      Lender lender;
      SessionOptions sessionOptions;
      sessionOptions.timeline = timeline;
      auto session = lender.session(sessionOptions);
      ASSERT_TRUE(session);
      for (int step = 0; step < 4; ++step)
        lender.stepsRight(*session);
      EXPECT_EQ(0, session->stagingBytes());
      if (timeline) {
        const DeviceRecord &device = session->timeline().devices[0];
        EXPECT_EQ(lender.rounds * bytes, device.bytesLent);
        EXPECT_EQ(device.bytesSent, device.bytesLent);
        for (const CopyRecord &loan : session->timeline().queues[0])
          EXPECT_EQ(0, loan.durationNs());
      } else if (usesFakeCuda()) {
        EXPECT_GT(fakeCudaGraphLaunches(), 0);
      }
      session.reset();
      ASSERT_EQ("", cudaMisuse());
    }
}

/// What would be wrong is seen by the fake driver: the tests above can fail.
TEST(CudaLoan, WhatIsNotOrderedIsFound) {
  if (!usesFakeCuda())
    GTEST_SKIP() << "a GPU does not tell";
  for (bool early : {false, true}) {
    // Streams have to meet for it.
    std::string misuse;
    for (uint64_t seed = 1; seed <= 100 && misuse.empty(); ++seed) {
      fakecuda::FakeOptions options;
      options.seed = seed;
      options.longestDelay = 50;
      resetCuda(options);
      Lender lender;
      (early ? lender.givesBackEarly : lender.forgets) = true;
      auto session = lender.session();
      ASSERT_TRUE(session);
      (void)session->step();
      session.reset();
      misuse = cudaMisuse();
    }
    EXPECT_THAT(misuse, HasSubstr("what kernel")) << early;
    resetCuda();
  }
}

TEST(CudaLoan, GpusLendEachOtherNothing) {
  if (!usesFakeCuda())
    GTEST_SKIP() << "needs two GPUs";
  fakecuda::FakeOptions options;
  options.devices = 2;
  resetCuda(options);
  Lender lender;
  std::vector<Body> none{doNothing, doNothing};
  std::move(none.begin(), none.end(), bodies);
  EXPECT_THAT(creationError(lender.program),
              HasSubstr("queue 0 (cuda0 to cuda1): message 'm0' is lent, but "
                        "the devices are on GPUs 0 and 1, which have memories "
                        "of their own: compile the program with "
                        "--transfers=copy"));
}

/// The run through the step at the start has nothing to borrow yet; products
/// read what stands for it, also where the borrower's own arena is smaller.
TEST(CudaLoan, ProductsOfWhatIsBorrowed) {
  const baechi_cuda_product product = denseProduct(1, 2, 64);
  const int64_t lentBytes = 2 * 64 * 4;
  Program program = makeProgram(2, lentBytes);
  for (DeviceInfo &device : program.devices)
    device.kind = "cuda";
  program.devices[1].arenaBytes = 320;
  addQueue(program, 0, 1, {lentBytes});
  program.queues[0].messages[0].lent = true;
  addArgument(program, 0, 0, lentBytes);
  addArgument(program, 1, 0, 256);
  addResult(program, 1, 256, 8);
  auto session = makeSession(
      program, {[](Context context, char *arena) {
                  return sendAndWait(context, 0, 0, arena);
                },
                [&](Context context, char *arena) {
                  const void *source = nullptr;
                  if (baechi_borrow(context, 0, 0, &source))
                    return 1;
                  baechi_cuda_multiply(&product, arena, source, arena + 256,
                                       nullptr, nullptr, 0);
                  return baechi_give_back(context, 0, 0);
                }});
  ASSERT_TRUE(session);
  std::vector<float> matrix(128, 2), vector(64, 3), got(2);
  ASSERT_SUCCESS(session->setArgument(0, matrix.data(), size_t(lentBytes)));
  ASSERT_SUCCESS(session->setArgument(1, vector.data(), 256));
  for (int step = 0; step < 3; ++step)
    ASSERT_SUCCESS(session->step());
  ASSERT_SUCCESS(session->getResult(0, got.data(), 8));
  EXPECT_EQ((std::vector<float>{384, 384}), got);
}

} // namespace

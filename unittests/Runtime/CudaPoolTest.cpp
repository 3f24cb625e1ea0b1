//===- CudaPoolTest.cpp - Tensors of a GPU that wait in host memory ---===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "CudaPrograms.h"

#include <numeric>

using namespace baechi::runtime;
using namespace baechi::runtime::test;

namespace {

constexpr int64_t bytes = Ring::count * int64_t(sizeof(int32_t));

/// A GPU sends a tensor to the pool, writes others in its place, and fetches
/// it again, by copies that its own work does not wait for.
TEST(CudaPool, WhatWaitsThereComesBack) {
  constexpr int32_t rounds = 4;
  for (bool timeline : {true, false})
    for (uint64_t seed = 1; seed <= 10; ++seed) {
      SCOPED_TRACE(seed);
      fakecuda::FakeOptions fake;
      fake.seed = seed;
      fake.longestDelay = 50;
      resetCuda(fake);
      // Slots of the GPU: the argument, a place that is used twice, the sum.
      Program program = makeProgram(2, rounds * Ring::slot);
      program.devices[0].kind = "cuda";
      program.devices[1].kind = "pool";
      addQueue(program, 0, 1, std::vector<int64_t>(rounds, bytes));
      addQueue(program, 1, 0, std::vector<int64_t>(rounds, bytes));
      addArgument(program, 0, 0, bytes);
      addResult(program, 0, 2 * Ring::slot, bytes);
      SessionOptions options;
      options.timeline = timeline;
      auto session = makeSession(
          program,
          {[](Context context, char *arena) {
             char *number = arena, *place = arena + Ring::slot;
             char *sum = arena + 2 * Ring::slot;
             for (int32_t round = 0; round < rounds; ++round) {
               launch("double_numbers", {place, number});
               launch("double_numbers", {number, place});
               if (sendAndWait(context, 0, round, place))
                 return 1;
             }
             baechi_cuda_copy(sum, number, bytes);
             for (int32_t round = 0; round < rounds; ++round) {
               if (recvAndWait(context, 1, round, place))
                 return 1;
               launch("add_numbers", {sum, sum, place});
             }
             return 0;
           },
           [](Context context, char *arena) {
             for (int32_t round = 0; round < rounds; ++round)
               if (recvAndWait(context, 0, round, arena + round * Ring::slot))
                 return 1;
             for (int32_t round = 0; round < rounds; ++round)
               if (sendAndWait(context, 1, round, arena + round * Ring::slot))
                 return 1;
             return 0;
           }},
          options);
      ASSERT_TRUE(session);
      for (int step = 0; step < 3; ++step) {
        std::vector<int32_t> number(Ring::count), want, got(number);
        std::iota(number.begin(), number.end(), step + 1);
        // 2 + 8 + 32 + 128 of what waited, 256 of the last.
        for (int32_t each : number)
          want.push_back((2 + 8 + 32 + 128 + 256) * each);
        ASSERT_SUCCESS(session->setArgument(0, number.data(), bytes));
        ASSERT_SUCCESS(session->step());
        ASSERT_SUCCESS(session->getResult(0, got.data(), bytes));
        ASSERT_EQ(want, got);
      }
      // The pool's own memory is pinned: nothing is copied twice.
      EXPECT_EQ(0, session->stagingBytes());
      session.reset();
      ASSERT_EQ("", cudaMisuse());
    }
}

} // namespace

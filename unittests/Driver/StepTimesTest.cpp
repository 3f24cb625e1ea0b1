//===- StepTimesTest.cpp - Copies that are hidden, bytes that are held ----===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Baechi/Driver/Report/StepTimes.h"
#include "gtest/gtest.h"
#include <algorithm>
#include <random>

using namespace baechi;
using runtime::Interval;

namespace {

runtime::Program twoDevicesAndAPool() {
  runtime::Program program;
  program.devices.resize(3);
  program.queues = {{0, 2, {}}, {2, 0, {}}, {1, 2, {}}, {0, 1, {}}};
  return program;
}

TEST(StepTimes, CopiesAreHiddenByWhatTheOtherEndComputes) {
  StepTimes times;
  times.operators = {{{0, 100}, {150, 200}}, {{0, 1000}}, {{500, 600}}};
  // Half beside an operator of device 0, none, all beside one of device 1; the
  // last has no end at the pool.
  times.messages = {{{50, 150}}, {{200, 300}}, {{900, 910}}, {{0, 100}}};
  PoolCopies copies = poolCopies(twoDevicesAndAPool(), times, 2);
  EXPECT_EQ(copies.ns, 100 + 100 + 10);
  EXPECT_EQ(copies.hiddenNs, 50 + 0 + 10);
}

TEST(StepTimes, OperatorsAtOnceHideOnce) {
  StepTimes times;
  times.operators = {{{0, 60}, {10, 40}, {50, 80}}, {}, {}};
  times.messages = {{{20, 120}}, {Interval()}, {}, {}};
  PoolCopies copies = poolCopies(twoDevicesAndAPool(), times, 2);
  EXPECT_EQ(copies.ns, 100);
  EXPECT_EQ(copies.hiddenNs, 60);
}

TEST(StepTimes, LevelsCountEachByteOnce) {
  // Each byte and moment by itself, of random tensors that may overlap.
  constexpr int64_t kBytes = 40, kEnd = 60;
  for (unsigned seed = 0; seed < 200; ++seed) {
    std::mt19937 random(seed);
    auto below = [&](int64_t end) { return int64_t(random() % end); };
    StepTimes times;
    times.operators.resize(1);
    times.messages.resize(1);
    for (auto *intervals : {&times.operators[0], &times.messages[0]})
      for (int i = 0; i < 8; ++i) {
        int64_t begin = below(kEnd - 5);
        intervals->push_back({begin, begin + below(5)});
      }
    auto anyEvent = [&] {
      return HeldTensor::Event{below(2) == 1, 0, int32_t(below(8))};
    };
    std::vector<HeldTensor> held;
    std::vector<std::vector<bool>> used(kEnd, std::vector<bool>(kBytes));
    for (int i = 0; i < 6; ++i) {
      HeldTensor tensor;
      tensor.offset = below(kBytes - 10);
      tensor.bytes = 1 + below(10);
      auto timeOf = [&](HeldTensor::Event event) {
        return (event.isMessage ? times.messages
                                : times.operators)[0][event.position];
      };
      int64_t begin = 0, end = 0;
      if (below(4) > 0) {
        tensor.from = anyEvent();
        begin = timeOf(*tensor.from).beginNs;
      }
      for (int64_t ends = below(3); ends > 0; --ends) {
        tensor.until.push_back(anyEvent());
        end = std::max(end, timeOf(tensor.until.back()).endNs);
      }
      tensor.isKept = below(5) == 0;
      for (int64_t at = begin; at < (tensor.isKept ? kEnd : end); ++at)
        for (int64_t byte = 0; byte < tensor.bytes; ++byte)
          used[at][tensor.offset + byte] = true;
      held.push_back(std::move(tensor));
    }
    std::vector<placement::MemoryLevel> levels =
        arenaLevels({held}, times).front();
    ASSERT_EQ(levels.front().atNs, 0);
    size_t level = 0;
    for (int64_t at = 0; at < kEnd; ++at) {
      while (level + 1 < levels.size() && levels[level + 1].atNs <= at)
        ++level;
      EXPECT_EQ(levels[level].bytes,
                std::count(used[at].begin(), used[at].end(), true))
          << "seed " << seed << " at " << at;
    }
  }
}

} // namespace

//===- LoadTest.cpp - What else a machine does ----------------------------===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Baechi/Runtime/Load.h"
#include "Baechi/Runtime/Machine.h"

#include <gtest/gtest.h>

#include <chrono>

using namespace baechi::runtime;

namespace {
constexpr const char *stat = "cpu  100 200 300 9999 9999 1 2 3 7 0\n"
                             "cpu0 10 20 30 4000 5000 1 2 3 7 0\n"
                             "cpu1 100 0 0 4000 5000 0 0 0 0 0\n"
                             "cpu10 1 0 0 0 0\n"
                             "intr 12345 1 2\n";

TEST(Load, AddsUpWhatProcessorsDid) {
  EXPECT_EQ(0.66, busySeconds(stat, {0}, 100));
  EXPECT_EQ(1.66, busySeconds(stat, {1, 0}, 100));
  EXPECT_EQ(0.01, busySeconds(stat, {10}, 100));
}

TEST(Load, SaysNothingOfProcessorsThatAreNotThere) {
  EXPECT_EQ(std::nullopt, busySeconds(stat, {0, 2}, 100));
  EXPECT_EQ(std::nullopt, busySeconds("", {0}, 100));
}

TEST(Load, OthersDisturbWhereTheyLeaveTooLittle) {
  EXPECT_FALSE(isCrowded(0.05, 2, 2));
  EXPECT_TRUE(isCrowded(0.3, 2, 2));
  EXPECT_FALSE(isCrowded(30, 64, 2));
  EXPECT_TRUE(isCrowded(63, 64, 2));
  // More threads than processors disturb themselves.
  EXPECT_FALSE(isCrowded(0, 2, 4));
}

TEST(Load, OwnWorkIsNoOthers) {
  LoadWatch watch;
  EXPECT_EQ(std::nullopt, watch.others());
  auto until =
      std::chrono::steady_clock::now() + std::chrono::milliseconds(300);
  while (std::chrono::steady_clock::now() < until)
    ;
  std::optional<double> others = watch.others();
  if (others) {
    EXPECT_GE(*others, 0);
    // The clocks are not read at once.
    EXPECT_LE(*others, double(queryHost().processors.size()) + 0.2);
  }
}
} // namespace

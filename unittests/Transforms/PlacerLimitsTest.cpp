//===- PlacerLimitsTest.cpp - Limits that a plan has taught ---------------===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Transforms/PlaceAndPlan/PlacerLimits.h"
#include "gtest/gtest.h"

using namespace baechi;

/// Of 100,000 bytes each.
static placement::Machine twoDevices() {
  placement::Machine machine;
  machine.devices.resize(2);
  for (placement::Device &device : machine.devices) {
    device.kind = "host";
    device.memory = 100'000;
  }
  return machine;
}

/// Of a plan that exceeds \p device by \p bytes, as was promised.
static std::vector<ArenaReport> exceeding(size_t device, int64_t bytes) {
  std::vector<ArenaReport> arenas(2);
  for (ArenaReport &arena : arenas) {
    arena.limit = 100'000;
    arena.bytes = arena.promised = 90'000;
  }
  arenas[device].promised = 100'000;
  arenas[device].bytes = 100'000 + bytes;
  return arenas;
}

TEST(PlacerLimits, OfADeviceThatWasNeverLoweredAreLoweredAfterARaise) {
  PlacerLimits limits(twoDevices());
  ASSERT_TRUE(limits.lower(exceeding(0, 10'000), /*all=*/false));
  EXPECT_EQ(limits.machine().devices[0].memory, 90'000);
  ASSERT_TRUE(limits.raise());
  EXPECT_EQ(limits.machine().devices[0].memory, 95'000);
  ASSERT_TRUE(limits.lower(exceeding(1, 2'000), /*all=*/false));
  EXPECT_EQ(limits.machine().devices[1].memory, 98'000);
}

TEST(PlacerLimits, StayAboveThoseWithinWhichNothingWasPlaced) {
  PlacerLimits limits(twoDevices());
  ASSERT_TRUE(limits.lower(exceeding(0, 10'000), /*all=*/false));
  ASSERT_TRUE(limits.raise());
  ASSERT_TRUE(limits.lower(exceeding(0, 10'000), /*all=*/false));
  EXPECT_EQ(limits.machine().devices[0].memory, 92'500);
}

TEST(PlacerLimits, WithinWhichNothingWasPlacedAreInVain) {
  PlacerLimits limits(twoDevices());
  EXPECT_FALSE(limits.areInVain());
  ASSERT_TRUE(limits.allowBeyond(10'000));
  EXPECT_FALSE(limits.areInVain());
  // As much above the true limit as promised: it is the first one again.
  std::vector<ArenaReport> arenas = exceeding(0, 10'000);
  arenas[0].promised = arenas[0].bytes;
  arenas[1].promised = arenas[1].bytes = 110'000;
  ASSERT_TRUE(limits.lower(arenas, /*all=*/false));
  EXPECT_TRUE(limits.areInVain());
}

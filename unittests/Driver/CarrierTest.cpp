//===- CarrierTest.cpp - What moves messages of simulated links -----------===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Baechi/Driver/Input/Options.h"
#include "Baechi/Driver/Input/QueryMachine.h"
#include "gtest/gtest.h"

using namespace baechi;

namespace {

placement::Machine hostsOf(size_t count) {
  placement::Machine machine;
  for (size_t i = 0; i < count; ++i)
    machine.devices.push_back({"host" + std::to_string(i), "host", 1 << 20});
  return machine;
}

TEST(Carrier, HasNoCoreWhereDevicesOfItsComputerHaveAll) {
  placement::Machine four = hostsOf(4);
  EXPECT_TRUE(takesAllCores(four, 4, {}));
  EXPECT_FALSE(takesAllCores(four, 2, {}));
  EXPECT_FALSE(takesAllCores(four, 8, {}));
  // Two computers of two devices each.
  EXPECT_TRUE(takesAllCores(four, 2, {2, 1}));
  EXPECT_FALSE(takesAllCores(four, 4, {2, 2}));
  // Processes that have been given cores of their own.
  EXPECT_TRUE(takesAllCores(four, 1, {4, 1}));
  EXPECT_FALSE(takesAllCores(four, 2, {4, 1}));
  four.devices.back().kind = "cuda";
  EXPECT_FALSE(takesAllCores(four, 4, {}));
}

TEST(Carrier, MakesSlicesLarger) {
  placement::Machine two = hostsOf(2);
  placement::Link link;
  link.latencyNs = 100'000;
  link.bytesPerUs = 400;
  two.links = {std::nullopt, link, link, std::nullopt};
  CompileOptions options;
  options.exchange = "p3";
  SplitChoice choice;
  choice.replicas = 2;
  auto latencyBytes = [&](int64_t messageNs) {
    auto sliced =
        llvm::cantFail(slicedChoiceOf(choice, options, two, messageNs));
    EXPECT_TRUE(sliced);
    return sliced ? sliced->latencyBytes : 0;
  };
  EXPECT_EQ(latencyBytes(0), 40'000);
  EXPECT_EQ(latencyBytes(50'000), 60'000);
  // What was asked for stays.
  options.sliceBytes = "200000";
  EXPECT_EQ(latencyBytes(50'000), 0);
}

} // namespace

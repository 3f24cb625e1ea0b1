//===- CalibrateTest.cpp - Machines are fitted to steps -------------------===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Baechi/Costs/Measure/Calibrate.h"
#include "Baechi/Driver/Input/QueryMachine.h"
#include "Helpers.h"
#include "gmock/gmock.h"

using namespace baechi;
using namespace baechi::test;
using testing::HasSubstr;

namespace {
TEST(Calibrate, TellsHowMuchSharingCostsAndLeavesLinksOfASmallStep) {
  Recorder recorder;
  auto compilation =
      compileModel(optionsOf("mlp_tiny.mlir", "host:2"), recorder);
  ASSERT_TRUE(compilation);
  StepOptions options;
  options.steps = 3;
  StepRun run(*compilation, options, recorder);
  ASSERT_EQ(messageOf(run.run()), "");
  ASSERT_TRUE(run.single());
  placement::Machine machine = compilation->machine();
  machine.runtime = placement::RuntimeCosts{1000, 100, 500};
  std::vector<std::optional<placement::Link>> links = machine.links;
  calibrate(machine, run.placed().measured(), run.single()->measured(),
            [&](const llvm::Twine &line) { recorder.tell(line); });
  EXPECT_GE(machine.runtime->sharedPercent, 1);
  EXPECT_LE(machine.runtime->sharedPercent, 10'000);
  EXPECT_THAT(recorder.told, HasSubstr("calibrated: operators take "));
  EXPECT_THAT(recorder.told, HasSubstr("calibrated: the links stay"));
  for (auto [before, after] : llvm::zip_equal(links, machine.links)) {
    ASSERT_EQ(before.has_value(), after.has_value());
    if (before)
      EXPECT_EQ(before->latencyNs, after->latencyNs);
  }
}

TEST(QueryMachine, MeasuresLinksAndTheRuntime) {
  Recorder recorder;
  placement::Machine machine = llvm::cantFail(readMachine("host:2"));
  ASSERT_EQ(messageOf(queryMachine(machine, recorder)), "");
  ASSERT_TRUE(machine.runtime);
  EXPECT_GT(machine.runtime->stepNs, 0);
  ASSERT_TRUE(machine.links[1]);
  EXPECT_GT(machine.links[1]->bytesPerUs, 0);
  EXPECT_THAT(recorder.told, HasSubstr("GB/s, residual "));
  EXPECT_THAT(machine.meta, HasSubstr("\"bound_to\""));
}

TEST(QueryMachine, RefusesWhatIsNoHostAndNoGpu) {
  Recorder recorder;
  placement::Machine machine;
  machine.devices = {{"npu0", "npu", 1 << 20}};
  machine.links.resize(1);
  EXPECT_THAT(messageOf(queryMachine(machine, recorder)),
              HasSubstr("measures host and cuda devices"));
}
} // namespace

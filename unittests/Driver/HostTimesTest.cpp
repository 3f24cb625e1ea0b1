//===- HostTimesTest.cpp - What is known of a host is not measured again --===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Baechi/Driver/Input/HostTimes.h"
#include "Baechi/Conversion/HostJit/HostJit.h"
#include "Baechi/Runtime/Machine.h"
#include "Helpers.h"
#include "llvm/Support/FileSystem.h"
#include "gmock/gmock.h"

using namespace baechi;
using namespace baechi::test;
using testing::Contains;
using testing::Not;

namespace {
HostTimes known() {
  HostTimes times{runtime::queryHost().cores, {1001, 1002, 1003}};
  times.runtime.aloneNs = 1004;
  times.link = placement::Link{1005, 1006};
  return times;
}

class MeasuredMachine : public testing::Test {
protected:
  void SetUp() override {
    llvm::SmallString<128> path;
    ASSERT_FALSE(llvm::sys::fs::createTemporaryFile("driver", "json", path));
    file = path.str();
  }
  void TearDown() override { llvm::sys::fs::remove(file); }

  /// Of a machine whose profile knows \p times of \p target.
  std::unique_ptr<Compilation> measure(const std::string &target,
                                       const HostTimes &times,
                                       const std::string &machine,
                                       const std::string &budget = "auto") {
    Profile profile;
    profile.target = target;
    profile.hosts = {times};
    EXPECT_EQ(messageOf(writeProfile(file, profile)), "");
    DriverOptions options = optionsOf("mlp_tiny.mlir", machine);
    options.costs = "measured";
    options.profile = file;
    options.measure = budget;
    auto compilation = readModel(options, recorder);
    EXPECT_EQ(messageOf(compilation->measureMachine()), "");
    return compilation;
  }

  std::string file;
  Recorder recorder;
};

TEST_F(MeasuredMachine, IsTheProfiles) {
  auto compilation = measure(HostJit::hostTarget(), known(), "host:2");
  EXPECT_THAT(recorder.phases, Not(Contains("measuring the machine")));
  const placement::Machine &machine = compilation->machine();
  ASSERT_TRUE(machine.runtime);
  EXPECT_EQ(machine.runtime->stepNs, 1001);
  EXPECT_EQ(machine.runtime->operatorNs, 1002);
  EXPECT_EQ(machine.runtime->wakeNs, 1003);
  EXPECT_EQ(machine.runtime->aloneNs, 1004);
  for (size_t link : {1, 2}) {
    ASSERT_TRUE(machine.links[link]);
    EXPECT_EQ(machine.links[link]->latencyNs, 1005);
    EXPECT_EQ(machine.links[link]->bytesPerUs, 1006);
    // It is the machine's word.
    EXPECT_TRUE(machine.links[link]->lends);
  }
  std::optional<HostTimes> again = hostTimesOf(machine);
  ASSERT_TRUE(again && again->link);
  EXPECT_EQ(again->runtime.wakeNs, 1003);
  EXPECT_EQ(again->link->bytesPerUs, 1006);
}

TEST_F(MeasuredMachine, OfMoreDevicesThanProcessorsSharesThem) {
  int64_t cores = runtime::queryHost().cores;
  auto fits =
      measure(HostJit::hostTarget(), known(), "host:" + std::to_string(cores));
  EXPECT_EQ(fits->machine().runtime->cores, 0);
  auto more = measure(HostJit::hostTarget(), known(),
                      "host:" + std::to_string(cores + 1));
  EXPECT_EQ(more->machine().runtime->cores, cores);
  EXPECT_THAT(recorder.phases, Not(Contains("measuring the machine")));
}

TEST_F(MeasuredMachine, IsMeasuredWhereTheProfileIsOfAnother) {
  auto compilation = measure("elsewhere", known(), "host:2");
  EXPECT_THAT(recorder.phases, Contains("measuring the machine"));
  EXPECT_NE(compilation->machine().runtime->stepNs, 1001);
}

TEST_F(MeasuredMachine, IsMeasuredWhereTheProfileKnowsNoLink) {
  HostTimes times = known();
  times.link.reset();
  measure(HostJit::hostTarget(), times, "host:1");
  EXPECT_THAT(recorder.phases, Not(Contains("measuring the machine")));
  measure(HostJit::hostTarget(), times, "host:2");
  EXPECT_THAT(recorder.phases, Contains("measuring the machine"));
}

TEST_F(MeasuredMachine, IsMeasuredWithOtherProcessorsAndWhereAllIs) {
  HostTimes times = known();
  ++times.cores;
  measure(HostJit::hostTarget(), times, "host:2");
  EXPECT_THAT(recorder.phases, Contains("measuring the machine").Times(1));
  measure(HostJit::hostTarget(), known(), "host:2", "all");
  EXPECT_THAT(recorder.phases, Contains("measuring the machine").Times(2));
}
} // namespace

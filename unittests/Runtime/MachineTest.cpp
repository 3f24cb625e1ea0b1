//===- MachineTest.cpp - The machine query --------------------------------===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Baechi/Runtime/Machine.h"
#include "Baechi/Runtime/CarrierCosts.h"
#include "query/ControlGroup.h"

#include <gmock/gmock.h>

#include <fstream>
#include <set>

using namespace baechi::runtime;
using testing::DoubleNear;
using testing::HasSubstr;
namespace fs = std::filesystem;

namespace {

/// A made-up file system.
class ControlGroupTest : public testing::Test {
protected:
  void SetUp() override {
    const auto *info = testing::UnitTest::GetInstance()->current_test_info();
    root = fs::path(testing::TempDir()) /
           (std::string("baechi-control-group-") + info->name());
    fs::remove_all(root);
  }
  void TearDown() override { fs::remove_all(root); }

  void write(const std::string &path, const std::string &text) {
    fs::create_directories((root / path).parent_path());
    std::ofstream(root / path) << text;
  }

  fs::path root;
};

TEST_F(ControlGroupTest, NothingThere) {
  ControlGroupLimits limits = queryControlGroups(root);
  EXPECT_EQ(std::nullopt, limits.memoryBytes);
  EXPECT_EQ(std::nullopt, limits.cores);
}

TEST_F(ControlGroupTest, Version2) {
  write("proc/self/cgroup", "0::/outer/inner\n");
  write("sys/fs/cgroup/outer/inner/memory.max", "1000000\n");
  write("sys/fs/cgroup/outer/inner/memory.current", "300000\n");
  write("sys/fs/cgroup/outer/inner/memory.stat",
        "anon 200000\ninactive_file 50000\n");
  write("sys/fs/cgroup/outer/inner/cpu.max", "150000 100000\n");
  ControlGroupLimits limits = queryControlGroups(root);
  EXPECT_EQ(750000, limits.memoryBytes);
  EXPECT_EQ(1.5, limits.cores);
}

TEST_F(ControlGroupTest, TheTightestAncestorCounts) {
  write("proc/self/cgroup", "0::/outer/inner\n");
  write("sys/fs/cgroup/outer/inner/memory.max", "max\n");
  write("sys/fs/cgroup/outer/inner/memory.current", "1\n");
  write("sys/fs/cgroup/outer/inner/cpu.max", "400000 100000\n");
  write("sys/fs/cgroup/outer/memory.max", "5000\n");
  write("sys/fs/cgroup/outer/memory.current", "6000\n");
  write("sys/fs/cgroup/outer/cpu.max", "200000 100000\n");
  write("sys/fs/cgroup/cpu.max", "max 100000\n");
  ControlGroupLimits limits = queryControlGroups(root);
  EXPECT_EQ(0, limits.memoryBytes);
  EXPECT_EQ(2, limits.cores);
}

TEST_F(ControlGroupTest, Version1) {
  write("proc/self/cgroup", "4:memory:/job\n3:cpu,cpuacct:/job\nnonsense\n");
  write("sys/fs/cgroup/memory/job/memory.limit_in_bytes", "9000\n");
  write("sys/fs/cgroup/memory/job/memory.usage_in_bytes", "4000\n");
  write("sys/fs/cgroup/memory/job/memory.stat", "total_inactive_file 1000\n");
  write("sys/fs/cgroup/cpu/job/cpu.cfs_quota_us", "300000\n");
  write("sys/fs/cgroup/cpu/job/cpu.cfs_period_us", "100000\n");
  write("sys/fs/cgroup/cpu/cpu.cfs_quota_us", "-1\n");
  write("sys/fs/cgroup/cpu/cpu.cfs_period_us", "100000\n");
  ControlGroupLimits limits = queryControlGroups(root);
  EXPECT_EQ(6000, limits.memoryBytes);
  EXPECT_EQ(3, limits.cores);
}

TEST(Machine, HostIsPlausible) {
  HostInfo host = queryHost();
  EXPECT_GE(host.cores, 1);
  EXPECT_LE(size_t(host.cores), host.processors.size());
  EXPECT_GT(host.memoryBytes, 0);
  std::set<int> distinct(host.processors.begin(), host.processors.end());
  EXPECT_EQ(host.processors.size(), distinct.size());
}

TEST(LinkFit, ExactSamples) {
  std::vector<TransferSample> samples;
  for (int64_t bytes : {0, 100, 10000, 1000000})
    samples.push_back({bytes, 2000 + double(bytes) / 8});
  Expected<LinkFit> fit = fitLink(samples);
  ASSERT_TRUE(bool(fit)) << fit.error().message();
  EXPECT_THAT(fit->latencyNs, DoubleNear(2000, 1e-6));
  EXPECT_THAT(fit->bytesPerNs, DoubleNear(8, 1e-9));
  EXPECT_THAT(fit->residual, DoubleNear(0, 1e-9));
  EXPECT_EQ(samples.size(), fit->samples.size());
}

TEST(LinkFit, EverySizeCountsWithItsRelativeError) {
  // The largest is 10% off: ordinary least squares would put the latency far
  // below zero or above its tenfold.
  std::vector<TransferSample> samples;
  for (int64_t bytes : {0, 1000, 10000, 100000, 10000000})
    samples.push_back({bytes, 1000 + double(bytes) / 10});
  samples.back().ns *= 1.1;
  Expected<LinkFit> fit = fitLink(samples);
  ASSERT_TRUE(bool(fit));
  EXPECT_THAT(fit->latencyNs, DoubleNear(1000, 50));
  EXPECT_GT(fit->residual, 0);
  EXPECT_LT(fit->residual, 0.1);
}

TEST(LinkFit, NoNegativeLatency) {
  std::vector<TransferSample> samples = {{100, 5}, {200, 20}, {300, 35}};
  Expected<LinkFit> fit = fitLink(samples);
  ASSERT_TRUE(bool(fit));
  EXPECT_EQ(0, fit->latencyNs);
  EXPECT_GT(fit->bytesPerNs, 0);
}

TEST(LinkFit, SamplesThatTellNothing) {
  using Samples = std::vector<TransferSample>;
  auto error = [](const Samples &samples) {
    Expected<LinkFit> fit = fitLink(samples);
    return fit ? "" : fit.error().message();
  };
  EXPECT_THAT(error({}), HasSubstr("samples of two sizes are needed"));
  EXPECT_THAT(error({{8, 1}, {8, 2}}), HasSubstr("two sizes are needed"));
  EXPECT_THAT(error({{8, 0}, {16, 2}}), HasSubstr("8 bytes took 0.0"));
  EXPECT_THAT(error({{-8, 1}, {16, 2}}), HasSubstr("-8 bytes"));
  EXPECT_THAT(error({{0, 10}, {16, 1}}), HasSubstr("do not grow"));
}

TEST(LinkFit, DisturbedSamplesGiveALink) {
  // Times that fall with the size, and with one of them a line of what is left.
  LinkFit flat = fitDisturbed({{0, 1000}, {1 << 10, 700}, {1 << 20, 10}});
  EXPECT_TRUE(flat.disturbed);
  EXPECT_EQ(1000, flat.latencyNs);
  EXPECT_THAT(flat.bytesPerNs, DoubleNear((1 << 20) / 1000.0, 1e-9));
  LinkFit grows = fitDisturbed({{0, 1000}, {1 << 10, 10}, {1 << 20, 3000}});
  EXPECT_TRUE(grows.disturbed);
  EXPECT_THAT(grows.latencyNs, DoubleNear(1000, 50));
  EXPECT_THAT(grows.bytesPerNs, DoubleNear((1 << 20) / 2000.0, 10));
}

TEST(LinkMeasure, GivesAPositiveLink) {
  LinkMeasureOptions options;
  options.largestBytes = 1 << 20;
  options.repetitions = 5;
  Expected<LinkFit> fit = measureLink(options);
  ASSERT_TRUE(bool(fit)) << fit.error().message();
  EXPECT_GE(fit->latencyNs, 0);
  EXPECT_GT(fit->bytesPerNs, 0);
  ASSERT_GE(fit->samples.size(), 2u);
  EXPECT_EQ(0, fit->samples.front().bytes);
  EXPECT_EQ(1 << 20, fit->samples.back().bytes);
}

TEST(LinkMeasure, MeasuresAnyPair) {
  LinkMeasureOptions options;
  options.largestBytes = 1 << 20;
  options.repetitions = 3;
  options.sender = 2;
  options.receiver = 1;
  Expected<LinkFit> fit = measureLink(options);
  ASSERT_TRUE(bool(fit)) << fit.error().message();
  EXPECT_GT(fit->bytesPerNs, 0);
}

TEST(LinkMeasure, MeasuresADiskBothWays) {
  LinkMeasureOptions options;
  options.largestBytes = 1 << 20;
  options.repetitions = 3;
  options.kinds = {"host", "disk"};
  for (bool comes : {false, true}) {
    options.sender = comes;
    options.receiver = !comes;
    Expected<LinkFit> fit = measureLink(options);
    ASSERT_TRUE(bool(fit)) << fit.error().message();
    EXPECT_GT(fit->bytesPerNs, 0);
  }
}

TEST(StepMeasure, GivesTimes) {
  Expected<StepOverheads> overheads = measureHostStep();
  ASSERT_TRUE(bool(overheads)) << overheads.error().message();
  EXPECT_GT(overheads->stepNs, 0);
  EXPECT_GE(overheads->operatorNs, 0);
  EXPECT_GE(overheads->wakeNs, 0);
}

TEST(CarrierMeasure, GivesTimes) {
  Expected<CarrierCosts> costs = measureCarrier();
  ASSERT_TRUE(bool(costs)) << costs.error().message();
  EXPECT_GT(costs->messageNs, 0);
  EXPECT_GT(costs->bytesPerUs, 0);
}

TEST(LinkMeasure, NonsenseIsAnError) {
  for (LinkMeasureOptions options :
       {LinkMeasureOptions{0, 1, 0, 5}, LinkMeasureOptions{0, 1, 100, 0},
        LinkMeasureOptions{0, 1, int64_t(1) << 40, 5},
        LinkMeasureOptions{1, 1, 100, 5}, LinkMeasureOptions{-1, 1, 100, 5}})
    EXPECT_FALSE(bool(measureLink(options)));
}

/// Overheads that are measured one after the other.
Expected<StepOverheads> settled(const std::vector<StepOverheads> &found,
                                size_t &calls) {
  calls = 0;
  return settleOverheads(
      [&]() -> Expected<StepOverheads> { return found.at(calls++); });
}

TEST(StepOverheads, TwoThatAgreeAreEnough) {
  size_t calls = 0;
  auto times =
      settled({{30000, 60, 50000, 20000}, {33000, 50, 52000, 12000}}, calls);
  ASSERT_TRUE(times);
  EXPECT_EQ(2U, calls);
  EXPECT_FALSE(times->disturbed);
  EXPECT_EQ(30000, times->stepNs);
  EXPECT_EQ(50, times->operatorNs);
  EXPECT_EQ(50000, times->wakeNs);
}

TEST(StepOverheads, ADisturbedOneIsNotBelieved) {
  size_t calls = 0;
  auto times = settled({{30000, 60, 3592700, 20000},
                        {30000, 60, 50000, 20000},
                        {30000, 60, 55000, 20000}},
                       calls);
  ASSERT_TRUE(times);
  EXPECT_EQ(3U, calls);
  EXPECT_EQ(50000, times->wakeNs);
  EXPECT_FALSE(times->disturbed);
}

TEST(StepOverheads, WhereNoneAgreeTheLeastIsTakenAndMarked) {
  size_t calls = 0;
  auto times = settled({{30000, 60, 9e6, 0},
                        {30000, 60, 5e6, 0},
                        {30000, 60, 3e6, 0},
                        {30000, 60, 1e6, 0},
                        {30000, 60, 1e5, 0}},
                       calls);
  ASSERT_TRUE(times);
  EXPECT_EQ(5U, calls);
  EXPECT_EQ(1e5, times->wakeNs);
  EXPECT_TRUE(times->disturbed);
}
} // namespace

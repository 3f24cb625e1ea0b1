//===- CostsTest.cpp - What kernels take, in steps and on GPUs ------------===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "../Runtime/FakeCuda/FakeCuda.h"
#include "Baechi/Costs/Measure/KernelCosts.h"
#include "Baechi/Costs/Measure/StepCosts.h"
#include "Helpers.h"
#include "gmock/gmock.h"
#include <cstdlib>

using namespace baechi;
using namespace mlir;
using namespace baechi::test;
using testing::HasSubstr;

namespace {
bool ignore(size_t, size_t) { return true; }

std::string measureSteps(Execution &single, Compilation &compilation,
                         Profile &profile, const StepSampling &sampling = {}) {
  auto runStep = [&]() -> llvm::Expected<const runtime::Timeline *> {
    if (llvm::Error error = single.step(/*counted=*/false))
      return std::move(error);
    return &single.timeline();
  };
  return messageOf(measureStepCosts(single.program(), runStep,
                                    compilation.module(), profile, sampling,
                                    ignore));
}

TEST(StepCosts, EveryKernelThatRunsGetsItsTime) {
  Recorder recorder;
  auto compilation =
      compileModel(optionsOf("mlp_tiny.mlir", "host:2"), recorder);
  ASSERT_TRUE(compilation);
  Profile profile;
  EXPECT_TRUE(lacksStepCosts(compilation->module(), "host", profile));
  auto single = llvm::cantFail(compilation->createSingle("host"));
  ASSERT_TRUE(single);
  ASSERT_EQ(messageOf(setAll(*compilation, *single)), "");
  ASSERT_EQ(measureSteps(*single, *compilation, profile), "");
  EXPECT_FALSE(lacksStepCosts(compilation->module(), "host", profile));
  EXPECT_EQ(profile.rows.size(), compilation->compiler().kernels());
  for (const ProfileRow &row : profile.rows) {
    EXPECT_GE(row.stepNs, 0) << row.kernel;
    EXPECT_EQ(row.kind, "host");
    EXPECT_GE(row.bytes, 0) << row.kernel;
  }
}

TEST(StepCosts, WhatAProfileKnowsStays) {
  Recorder recorder;
  auto compilation =
      compileModel(optionsOf("mlp_tiny.mlir", "host:1"), recorder);
  ASSERT_TRUE(compilation);
  auto single = llvm::cantFail(compilation->createSingle("host"));
  ASSERT_EQ(messageOf(setAll(*compilation, *single)), "");
  Profile profile;
  ASSERT_EQ(measureSteps(*single, *compilation, profile), "");
  constexpr int64_t known = 123456789;
  profile.rows.front().stepNs = known;
  profile.rows.back().stepNs = -1;
  ASSERT_EQ(measureSteps(*single, *compilation, profile), "");
  EXPECT_EQ(profile.rows.front().stepNs, known);
  EXPECT_GE(profile.rows.back().stepNs, 0);
}

TEST(StepCosts, DisturbedStepsAreTakenAgainAndElseMarked) {
  Recorder recorder;
  auto compilation =
      compileModel(optionsOf("mlp_tiny.mlir", "host:1"), recorder);
  ASSERT_TRUE(compilation);
  auto single = llvm::cantFail(compilation->createSingle("host"));
  ASSERT_EQ(messageOf(setAll(*compilation, *single)), "");
  // By this clock a step takes a second, of which it computes a nanosecond or
  // all.
  double now = 0;
  size_t steps = 0, disturbedSteps = SIZE_MAX;
  StepSampling sampling;
  sampling.seconds = 0;
  sampling.clocks.wall = [&] { return now += 1e9; };
  double computed = 0;
  sampling.clocks.cpu = [&] {
    // Asked before and after each step.
    return computed += (steps++ / 2 < disturbedSteps) ? 1 : 1e9;
  };
  Profile profile;
  ASSERT_EQ(measureSteps(*single, *compilation, profile, sampling), "");
  // One to warm up, and three that are disturbed.
  EXPECT_EQ(steps, 8u);
  for (const ProfileRow &row : profile.rows) {
    EXPECT_TRUE(row.disturbed && row.stepDisturbed) << row.kernel;
    // The rest was somebody else's.
    EXPECT_EQ(row.stepNs, 0) << row.kernel;
  }
  EXPECT_TRUE(lacksStepCosts(compilation->module(), "host", profile));

  steps = 0;
  disturbedSteps = 3;
  ASSERT_EQ(measureSteps(*single, *compilation, profile, sampling), "");
  EXPECT_EQ(steps, 12u);
  for (const ProfileRow &row : profile.rows)
    EXPECT_FALSE(row.disturbed || row.stepDisturbed) << row.kernel;
  EXPECT_FALSE(lacksStepCosts(compilation->module(), "host", profile));
}

class CudaCosts : public testing::Test {
protected:
  void SetUp() override {
    setenv("BAECHI_CUDA_LIBRARY", fakecuda::path(), 1);
    setenv("BAECHI_CUBLASLT_LIBRARY", fakecuda::path(), 1);
    fakecuda::FakeOptions options;
    options.memoryBytes = size_t(1) << 30;
    fakeCudaReset(&options);
    DriverOptions asked = optionsOf("mlp_tiny.mlir", "cuda:1@512MiB");
    compilation = readModel(asked, recorder);
    ASSERT_TRUE(compilation);
  }
  void TearDown() override {
    unsetenv("BAECHI_CUDA_LIBRARY");
    unsetenv("BAECHI_CUBLASLT_LIBRARY");
  }

  Recorder recorder;
  std::unique_ptr<Compilation> compilation;
};

TEST_F(CudaCosts, RowsOfAnotherGpuGoWithAWarning) {
  Profile profile;
  profile.cudaTarget = "another GPU";
  profile.rows.push_back({"k", "hash", "cublaslt", "cuda"});
  profile.rows.push_back({"k", "hash", "generated", "host"});
  ASSERT_EQ(messageOf(cudaCosts().adopt(compilation->module(), profile)), "");
  ASSERT_EQ(profile.rows.size(), 1u);
  EXPECT_EQ(profile.rows.front().kind, "host");
  EXPECT_NE(profile.cudaTarget, "another GPU");
  EXPECT_THAT(recorder.errors, HasSubstr("measured on 'another GPU'"));
  // The same GPU once more: nothing goes.
  profile.rows.push_back({"k", "hash", "cublaslt", "cuda"});
  ASSERT_EQ(messageOf(cudaCosts().adopt(compilation->module(), profile)), "");
  EXPECT_EQ(profile.rows.size(), 2u);
}

TEST_F(CudaCosts, EveryProductIsSearchedOnce) {
  Profile profile;
  ASSERT_EQ(messageOf(cudaCosts().adopt(compilation->module(), profile)), "");
  auto measure = [&] {
    return cudaCosts().measure(compilation->module(), profile, {}, ignore);
  };
  FailureOr<size_t> first = measure();
  ASSERT_TRUE(succeeded(first));
  EXPECT_GT(*first, 0u);
  EXPECT_EQ(profile.rows.size(), *first);
  for (const ProfileRow &row : profile.rows) {
    EXPECT_EQ(row.implementation, "cublaslt");
    EXPECT_FALSE(row.algorithm.empty()) << row.kernel;
  }
  FailureOr<size_t> again = measure();
  ASSERT_TRUE(succeeded(again));
  EXPECT_EQ(*again, 0u);
}
} // namespace

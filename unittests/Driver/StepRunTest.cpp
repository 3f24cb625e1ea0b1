//===- StepRunTest.cpp - Steps are run and compared -----------------------===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Helpers.h"
#include "gmock/gmock.h"
#include <chrono>
#include <thread>

using namespace baechi;
using namespace baechi::test;
using testing::HasSubstr;

namespace {
class Steps : public testing::Test {
protected:
  void SetUp() override {
    compilation = compileModel(optionsOf("mlp_tiny.mlir", "host:2"), recorder);
    ASSERT_TRUE(compilation);
  }
  std::unique_ptr<Execution> create() {
    auto created = Execution::create(compilation->compiler().jit(),
                                     compilation->program(), /*watchdog=*/60);
    EXPECT_TRUE(bool(created));
    return std::move(*created);
  }

  Recorder recorder;
  std::unique_ptr<Compilation> compilation;
};

TEST_F(Steps, AreComparedWithOneDevice) {
  StepOptions options;
  options.steps = 3;
  StepRun run(*compilation, options, recorder);
  ASSERT_EQ(messageOf(run.run()), "");
  RunReport report = run.report();
  ASSERT_TRUE(run.single());
  EXPECT_TRUE(report.isRight());
  EXPECT_EQ(report.lossName, "loss");
  EXPECT_EQ(report.losses.size(), 3u);
  // The first step warms up.
  EXPECT_EQ(report.measured.wallNs.size(), 2u);
  EXPECT_EQ(report.residentBytes.size(), 2u);
  EXPECT_GT(report.singlePredictedNs, 0);
}

TEST_F(Steps, TellLossesThatAreNotTheReferences) {
  StepOptions options;
  options.steps = 2;
  options.check = false;
  options.expected = {1e6, 1e6, 1e6};
  StepRun run(*compilation, options, recorder);
  ASSERT_EQ(messageOf(run.run()), "");
  RunReport report = run.report();
  EXPECT_FALSE(run.single());
  ASSERT_TRUE(report.reference);
  EXPECT_EQ(report.reference->steps, 2u);
  EXPECT_FALSE(report.isRight());
  options.expected = report.losses;
  StepRun again(*compilation, options, recorder);
  ASSERT_EQ(messageOf(again.run()), "");
  EXPECT_TRUE(again.report().isRight());
  EXPECT_EQ(again.report().reference->worst, 0);
}

TEST_F(Steps, RunOnceMoreAfterAnInjectedFault) {
  StepOptions options;
  options.steps = 2;
  options.injectFault = 40;
  StepRun run(*compilation, options, recorder);
  ASSERT_EQ(messageOf(run.run()), "");
  EXPECT_TRUE(run.report().isRight());
  EXPECT_EQ(run.report().losses.size(), 2u);
  EXPECT_THAT(recorder.notes, HasSubstr("once more from the start"));
}

TEST_F(Steps, AProgramFindsTheFirstResultThatDiffers) {
  std::unique_ptr<Execution> a = create(), b = create();
  ASSERT_EQ(messageOf(setAll(*compilation, *a)), "");
  ASSERT_EQ(messageOf(setAll(*compilation, *b)), "");
  ASSERT_EQ(messageOf(a->step(true)), "");
  ASSERT_EQ(messageOf(b->step(true)), "");
  EXPECT_EQ(llvm::cantFail(firstDifference(*a, *b)), "");
  ASSERT_EQ(messageOf(b->step(true)), "");
  EXPECT_EQ(llvm::cantFail(firstDifference(*a, *b)), "result 'loss'");
}

TEST_F(Steps, RefuseAnArgumentOfAnotherSize) {
  std::unique_ptr<Execution> execution = create();
  Array array;
  array.type = "f32";
  array.shape = {1};
  array.data.resize(4);
  EXPECT_THAT(messageOf(execution->setArgument(0, array)),
              HasSubstr("has 128 bytes"));
}

TEST(Measurement, QuantilesLieBetweenSteps) {
  Measurement measurement;
  EXPECT_EQ(measurement.medianNs(), 0);
  measurement.wallNs = {40, 10, 20, 30};
  EXPECT_EQ(measurement.medianNs(), 25);
  EXPECT_EQ(measurement.quantileNs(0), 10);
  EXPECT_EQ(measurement.quantileNs(1), 40);
  EXPECT_EQ(measurement.meanNs(), 25);
}
/// As when a step is measured in a process that goes on.
TEST(LeftBehind, CodeStaysThatAThreadStillRuns) {
  Recorder recorder;
  DriverOptions options = optionsOf("", "host:1");
  options.text = R"(
func.func @step(%x: tensor<4xf32>, %n: tensor<i64> {baechi.init = {kind = "constant", value = 1.0e12 : f32}}) -> tensor<4xf32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %turns = tensor.extract %n[] : tensor<i64>
  %end = arith.index_cast %turns : i64 to index
  %0 = scf.for %i = %c0 to %end step %c1 iter_args(%y = %x) -> tensor<4xf32> {
    %1 = math.tanh %y : tensor<4xf32>
    scf.yield %1 : tensor<4xf32>
  }
  return %0 : tensor<4xf32>
}
)";
  auto compilation = compileModel(options, recorder);
  ASSERT_TRUE(compilation);
  {
    auto created = Execution::create(compilation->compiler().jit(),
                                     compilation->program(), /*watchdog=*/0.2);
    ASSERT_TRUE(bool(created));
    ASSERT_EQ(messageOf(setAll(*compilation, **created)), "");
    EXPECT_THAT(messageOf((*created)->step(/*counted=*/false)),
                HasSubstr("left behind"));
    EXPECT_FALSE((*created)->usable());
  }
  compilation.reset();
  // It would end the process.
  std::this_thread::sleep_for(std::chrono::milliseconds(100));
}
} // namespace

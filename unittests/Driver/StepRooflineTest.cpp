//===- StepRooflineTest.cpp - The yardstick of a step ---------------------===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Baechi/Driver/Report/StepRoofline.h"
#include "Helpers.h"
#include "gmock/gmock.h"

using namespace baechi;
using namespace baechi::test;
using testing::HasSubstr;

namespace {

/// Two products and a sum, of 32 x 16 by 16 x 8.
constexpr const char *kModel = R"(
func.func @step(%a: tensor<32x16xf32>, %b: tensor<16x8xf32>)
    -> tensor<32x8xf32> {
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<32x8xf32>
  %start = linalg.fill ins(%zero : f32) outs(%empty : tensor<32x8xf32>)
      -> tensor<32x8xf32>
  %ab = linalg.matmul
      ins(%a, %b : tensor<32x16xf32>, tensor<16x8xf32>)
      outs(%start : tensor<32x8xf32>) -> tensor<32x8xf32>
  return %ab : tensor<32x8xf32>
})";
constexpr double kFlops = 2.0 * 32 * 16 * 8;
constexpr double kBytes = 4.0 * (32 * 16 + 16 * 8 + 32 * 8);

StepRoofline rooflineWith(const HostPeaks &peaks) {
  Recorder recorder;
  DriverOptions options = optionsOf("matmul.mlir", "host:1");
  options.text = kModel;
  std::unique_ptr<Compilation> compilation = compileModel(options, recorder);
  return compilation ? stepRoofline(compilation->module(), peaks, 1)
                     : StepRoofline();
}

TEST(StepRoofline, IsTheLongerOfArithmeticAndMemory) {
  StepRoofline computes = rooflineWith({1e9, 1e12});
  EXPECT_EQ(computes.work.flops, kFlops);
  EXPECT_EQ(computes.work.bytes, kBytes);
  EXPECT_DOUBLE_EQ(computes.ns, kFlops);
  EXPECT_DOUBLE_EQ(rooflineWith({1e12, 1e9}).ns, kBytes);
}

TEST(StepRoofline, CountsTheCores) {
  StepRoofline roofline;
  roofline.ns = 8e6;
  roofline.peaks = {200e9, 20e9};
  EXPECT_DOUBLE_EQ(roofline.reachedBy(10e6), 0.8);
  EXPECT_EQ(roofline.textOf(10e6), "80 % of the roofline: 8.000 ms on one core "
                                   "at 200 GFLOP/s and 20.0 GB/s");
  roofline.cores = 2;
  EXPECT_DOUBLE_EQ(roofline.reachedBy(5e6), 0.8);
  EXPECT_THAT(roofline.textOf(5e6),
              HasSubstr("80 % of the roofline of 2 cores"));
  EXPECT_EQ(roofline.reachedBy(0), 0);
}

TEST(StepRoofline, PeaksAreThoseOfAProcessor) {
  std::optional<HostPeaks> peaks = measureHostPeaks();
  ASSERT_TRUE(peaks);
  // What is left out by a compiler takes no time.
  EXPECT_GT(peaks->flopsPerSecond, 1e8);
  EXPECT_LT(peaks->flopsPerSecond, 1e13);
  EXPECT_GT(peaks->bytesPerSecond, 1e8);
  EXPECT_LT(peaks->bytesPerSecond, 1e12);
}

} // namespace

//===- CudaConvolutionSearchTest.cpp - Convolutions' fastest code ---------===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Baechi/Runtime/CudaConvolutions.h"
#include "CudaPrograms.h"

#include <gmock/gmock.h>

using namespace baechi::runtime;
using namespace baechi::runtime::test;
using testing::HasSubstr;

namespace {
/// 2 x 2 windows over one image of 9 x 9 with four channels, innermost.
baechi_cuda_convolution windows() {
  baechi_cuda_convolution to{};
  to.spaces = 2;
  to.images = {{1, 4, 9, 9}, {324, 1, 36, 4}, 64};
  to.filters = {{4, 4, 2, 2}, {16, 1, 8, 4}, 64};
  to.results = {{1, 4, 8, 8}, {256, 1, 32, 4}, 64};
  to.steps[0] = to.steps[1] = to.dilations[0] = to.dilations[1] = 1;
  to.type = BAECHI_CUDA_F32;
  to.workspace_bytes = 4096;
  return to;
}

/// The library's engine number `index` stands for generated code.
void nameEngine(baechi_cuda_convolution &convolution, int64_t index) {
  convolution.engine[0] = 1 + index;
  convolution.engine[1] = 1;
  convolution.engine[2] = int64_t(3) << 32 | 10 * index;
}

ConvolutionCandidate candidateOf(const baechi_cuda_convolution &library,
                                 const baechi_cuda_convolution &generated) {
  ConvolutionCandidate candidate;
  candidate.name = "windows";
  candidate.convolution = library;
  candidate.argumentBytes = {4 * 324, 4 * 64};
  candidate.resultBytes = 4 * 256;
  candidate.scratchBytes = 4096;
  candidate.a = 0;
  candidate.b = 1;
  auto call = [](baechi_cuda_convolution asked) {
    return [asked](void **p) {
      baechi_cuda_convolve(&asked, p[0], p[1], p[2], p[3]);
    };
  };
  candidate.generated = call(generated);
  candidate.library = call(library);
  return candidate;
}

ProductSearchOptions quick() {
  ProductSearchOptions options;
  options.samples = 3;
  return options;
}
} // namespace

TEST(CudaConvolutionSearch, TakesTheFastestEngine) {
  if (!usesFakeCuda())
    GTEST_SKIP() << "only the fake library's engines are known";
  // Number 2 needs no workspace, number 3 has 4096 bytes.
  for (int fast : {2, 3}) {
    fakecuda::FakeOptions options;
    options.fastAlgorithm = fast;
    resetCuda(options);
    baechi_cuda_convolution library = windows(), generated = windows();
    nameEngine(generated, 5 - fast);
    std::vector<ConvolutionCandidate> asked(2, candidateOf(library, generated));
    size_t done = 0;
    auto found = searchCudaConvolutions(asked, quick(),
                                        [&](size_t count) { done = count; });
    ASSERT_TRUE(found) << found.error().message();
    ASSERT_EQ(2u, found->size());
    EXPECT_EQ(2u, done);
    EXPECT_GT(fakeCudaGraphLaunches(), 0);
    for (const ConvolutionTimes &times : *found) {
      EXPECT_EQ(1 + fast, times.engine[0]);
      EXPECT_EQ(fast == 3 ? 4096 : 0, times.workspaceBytes);
      EXPECT_EQ(3, times.library.samples);
      EXPECT_EQ(3, times.generated.samples);
      EXPECT_LT(times.library.medianNs, times.generated.medianNs);
    }
    EXPECT_EQ("", cudaMisuse());
  }
}

TEST(CudaConvolutionSearch, WithinTheWorkspace) {
  if (!usesFakeCuda())
    GTEST_SKIP() << "only the fake library's engines are known";
  fakecuda::FakeOptions options;
  options.fastAlgorithm = 3;
  resetCuda(options);
  baechi_cuda_convolution library = windows(), generated = windows();
  library.workspace_bytes = 4095;
  nameEngine(generated, 3);
  auto found = searchCudaConvolutions(
      std::vector{candidateOf(library, generated)}, quick());
  ASSERT_TRUE(found) << found.error().message();
  EXPECT_EQ(3, found->front().engine[0]); // number 2
  EXPECT_GT(found->front().library.medianNs, found->front().generated.medianNs);
}

/// An engine whose results are others, and a library without engines, are none.
TEST(CudaConvolutionSearch, LeavesOutWhatComputesSomethingElse) {
  if (!usesFakeCuda())
    GTEST_SKIP() << "only the fake library's engines are known";
  for (bool refuses : {false, true}) {
    fakecuda::FakeOptions options;
    options.refusesConvolutions = refuses;
    resetCuda(options);
    ConvolutionCandidate candidate = candidateOf(windows(), windows());
    // Nothing like the sums.
    candidate.generated = [](void **p) {
      baechi_cuda_copy(p[2], p[0], 4 * 256);
    };
    auto found = searchCudaConvolutions(std::vector{candidate}, quick());
    ASSERT_TRUE(found) << found.error().message();
    EXPECT_EQ(0, found->front().library.samples);
    EXPECT_EQ(3, found->front().generated.samples);
    EXPECT_EQ("", cudaMisuse());
  }
}

TEST(CudaConvolutionSearch, NamesTheKernelWhoseCodeFails) {
  if (!usesFakeCuda())
    GTEST_SKIP() << "cuDNN's own checks differ";
  resetCuda();
  baechi_cuda_convolution library = windows(), generated = windows();
  nameEngine(generated, 77);
  auto found = searchCudaConvolutions(
      std::vector{candidateOf(library, generated)}, quick());
  ASSERT_FALSE(found);
  EXPECT_THAT(found.error().message(),
              HasSubstr("device cuda0, in operator 0 'windows': the profile's "
                        "engine for a convolution cannot run here"));
}

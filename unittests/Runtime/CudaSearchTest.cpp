//===- CudaSearchTest.cpp - The fastest algorithms of products ------------===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Baechi/Runtime/CudaProducts.h"
#include "Baechi/Runtime/Machine.h"
#include "CudaPrograms.h"

#include <gmock/gmock.h>

using namespace baechi::runtime;
using namespace baechi::runtime::test;
using testing::HasSubstr;

namespace {
std::vector<baechi_cuda_product> someProducts() {
  std::vector<baechi_cuda_product> products(3, denseProduct(5, 3, 4));
  products[0].workspace_bytes = 4096;
  products[1].workspace_bytes = 1024;
  products[1].transpose_a = products[1].transpose_b = 1;
  products[1].ld_a = 5;
  products[1].ld_b = 4;
  products[1].batch = 7;
  products[1].stride_a = 20;
  products[1].stride_b = 0;
  products[1].stride_c = 15;
  products[1].factor_type = BAECHI_CUDA_BF16;
  products[1].has_bias = 1;
  products[2].align_a = products[2].align_b = products[2].align_c = 64;
  products[2].math = BAECHI_CUDA_MATH_TF32;
  return products;
}
} // namespace

TEST(CudaSearch, TakesTheFastestThatFits) {
  if (!usesFakeCuda())
    GTEST_SKIP() << "only the fake library's algorithms are known";
  // The library's algorithms need 0, 1024 and 4096 bytes.
  for (int fast : {0, 1, 2}) {
    fakecuda::FakeOptions options;
    options.fastAlgorithm = fast;
    resetCuda(options);
    ProductSearchOptions search;
    search.samples = 3;
    size_t done = 0;
    std::vector<baechi_cuda_product> products = someProducts();
    auto found = searchCudaProducts(products, search,
                                    [&](size_t count) { done = count; });
    ASSERT_TRUE(found) << found.error().message();
    ASSERT_EQ(3u, found->size());
    EXPECT_EQ(3u, done);
    // Each sample is a graph of calls.
    EXPECT_GT(fakeCudaGraphLaunches(), 0);
    const int64_t needs[] = {0, 1024, 4096};
    EXPECT_EQ(needs[fast], (*found)[0].workspaceBytes);
    EXPECT_EQ(fast, (*found)[0].algorithm[1]);
    if (fast < 2)
      EXPECT_EQ(needs[fast], (*found)[1].workspaceBytes);
    EXPECT_EQ(0, (*found)[2].workspaceBytes);
    for (const ProductTime &time : *found) {
      EXPECT_EQ(3, time.samples);
      EXPECT_GT(time.medianNs, 0);
    }
    EXPECT_EQ("", cudaMisuse());
  }
}

TEST(CudaSearch, OnTheGpuThatIsThere) {
  resetCuda();
  std::vector<baechi_cuda_product> products = someProducts();
  auto found = searchCudaProducts(products);
  if (!found && !usesFakeCuda()) {
    // Of bfloat16 with alignments of four bytes, say.
    EXPECT_THAT(found.error().message(), HasSubstr("has no algorithm"));
    return;
  }
  ASSERT_TRUE(found) << found.error().message();
  for (size_t i = 0; i < products.size(); ++i)
    EXPECT_LE((*found)[i].workspaceBytes, products[i].workspace_bytes);
}

TEST(CudaSearch, NamesTheProductThatFails) {
  if (!usesFakeCuda())
    GTEST_SKIP() << "cuBLASLt's own checks differ";
  resetCuda();
  std::vector<baechi_cuda_product> products = someProducts();
  products[1].factor_type = BAECHI_CUDA_F16;
  products[1].result_type = BAECHI_CUDA_BF16;
  auto found = searchCudaProducts(products);
  ASSERT_FALSE(found);
  EXPECT_THAT(found.error().message(),
              HasSubstr("device cuda0, in operator 1 'product of 5 x 3 x 4': "
                        "cuBLASLt has no algorithm for a matrix product"));
  EXPECT_EQ("", cudaMisuse());
}

TEST(GpuQuery, NeighboursShareGpusWhereThereAreTooFew) {
  if (!usesFakeCuda())
    GTEST_SKIP() << "the number of GPUs is not the test's";
  fakecuda::FakeOptions options;
  options.devices = 2;
  options.memoryBytes = size_t(1) << 30;
  resetCuda(options);
  auto number = [](int32_t ordinal, int32_t count) {
    auto gpu = queryGpu(ordinal, count);
    EXPECT_TRUE(gpu) << gpu.error().message();
    EXPECT_EQ((int64_t(1) << 30) - gpuReserveBytes, gpu->memoryBytes);
    return gpu->number;
  };
  EXPECT_EQ(0, number(0, 1));
  EXPECT_EQ(1, number(1, 2));
  EXPECT_EQ(0, number(1, 4));
  EXPECT_EQ(1, number(2, 4));
}

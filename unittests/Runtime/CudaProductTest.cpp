//===- CudaProductTest.cpp - Products by the library, on the fake one -----===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "CudaPrograms.h"
#include "FakeCuda/FakeFloats.h"

#include <cmath>
#include <gmock/gmock.h>
#include <limits>

using namespace baechi::runtime;
using namespace baechi::runtime::test;
using testing::HasSubstr;

namespace {
/// A device that multiplies once: A, B, C, a bias and a workspace lie in its
/// arena, a slot each.
class CudaProducts : public testing::Test {
protected:
  static constexpr int64_t slot = 8192;

  void SetUp() override { resetCuda(); }

  /// C's slot after the product of what the first slots hold; the runtime's
  /// error where there is one.
  template <typename T>
  std::vector<T> multiply(const baechi_cuda_product &product, std::vector<T> a,
                          std::vector<T> b, std::vector<T> bias,
                          size_t elements) {
    Program program = makeProgram(1, 5 * slot);
    program.devices[0].kind = "cuda";
    program.devices[0].name = "cuda0";
    for (int64_t i : {0, 1, 3})
      addArgument(program, 0, i * slot, slot);
    addResult(program, 0, 2 * slot, slot);
    bodies[0] = [&](Context context, char *arena) {
      baechi_operator_begin(context, 0);
      baechi_cuda_multiply(&product, arena, arena + slot, arena + 2 * slot,
                           bias.empty() ? nullptr : arena + 3 * slot,
                           arena + 4 * slot + workspaceAt, 0);
      baechi_operator_end(context, 0);
      return 0;
    };
    auto created = Session::create(program, resolveBody);
    if (!created) {
      failure = created.takeError();
      return {};
    }
    std::unique_ptr<Session> session = std::move(*created);
    int argument = 0;
    for (std::vector<T> *values : {&a, &b, &bias}) {
      std::vector<T> whole = *values;
      whole.resize(slot / sizeof(T));
      EXPECT_SUCCESS(session->setArgument(argument++, whole.data(), slot));
    }
    failure = session->step();
    std::vector<T> result(slot / sizeof(T));
    if (!failure)
      EXPECT_SUCCESS(session->getResult(0, result.data(), slot));
    result.resize(elements);
    return result;
  }

  bool hasNoAlgorithm() const {
    return failure.message().find("cuBLASLt has no algorithm") !=
           std::string::npos;
  }

  /// Where the workspace begins in its slot.
  int64_t workspaceAt = 0;
  Error failure;
};

/// The fake's types themselves: ties to even, what is too large or small, NaN.
TEST(FakeFloats, RoundAsIeeeDoes) {
  using fakecuda::fromBf16, fakecuda::fromF16, fakecuda::toBf16,
      fakecuda::toF16;
  const float infinity = std::numeric_limits<float>::infinity();
  for (auto [value, bits] : std::initializer_list<std::pair<float, int>>{
           {0.0F, 0},
           {-0.0F, 0x8000},
           {1.0F, 0x3c00},
           {1 + 0x1p-11F, 0x3c00},
           {1 + 0x3p-11F, 0x3c02},
           {-65504.0F, 0xfbff},
           {65519.99F, 0x7bff},
           {65520.0F, 0x7c00},
           {1e30F, 0x7c00},
           {-infinity, 0xfc00},
           {0x1p-14F, 0x0400},
           {0x1p-14F - 0x1p-26F, 0x0400},
           {0x1p-15F, 0x0200},
           {0x1p-24F, 0x0001},
           {0x3p-25F, 0x0002},
           {0x1p-25F, 0x0000},
           {-0x1.1p-25F, 0x8001},
           {0x1p-140F, 0x0000}})
    EXPECT_EQ(toF16(value), bits) << value;
  EXPECT_TRUE(std::isnan(fromF16(toF16(NAN))));
  for (int bits = 0; bits < 0x10000; ++bits)
    if (float value = fromF16(uint16_t(bits)); !std::isnan(value))
      ASSERT_EQ(toF16(value), bits);
    else
      ASSERT_GT(bits & 0x7fff, 0x7c00);

  for (auto [value, bits] : std::initializer_list<std::pair<float, int>>{
           {1 + 0x1p-8F, 0x3f80},
           {1 + 0x3p-8F, 0x3f82},
           {std::numeric_limits<float>::max(), 0x7f80},
           {-infinity, 0xff80},
           {0x1p-133F, 0x0001},
           {0x1p-134F, 0x0000}})
    EXPECT_EQ(toBf16(value), bits) << value;
  // A NaN whose upper bits alone are infinity's.
  EXPECT_TRUE(std::isnan(fromBf16(toBf16(std::bit_cast<float>(0x7f800001U)))));
}

/// 1 + 2^-12 is 1 with TF32's ten bits of a fraction, and with fewer.
TEST_F(CudaProducts, RoundFactorsAsAsked) {
  const float x = 1 + 0x1p-9F + 0x1p-12F;
  for (auto [math, expected] : {std::pair(BAECHI_CUDA_MATH_FP32, x),
                                {BAECHI_CUDA_MATH_TF32, 1 + 0x1p-9F},
                                {BAECHI_CUDA_MATH_FP16, 1 + 0x1p-9F},
                                {BAECHI_CUDA_MATH_BF16, 1.0F}}) {
    baechi_cuda_product product = denseProduct(1, 1, 1);
    product.math = math;
    std::vector<float> got = multiply<float>(product, {x}, {1}, {}, 1);
    ASSERT_EQ("", failure.message());
    // A library may round less than it is allowed to.
    if (usesFakeCuda())
      EXPECT_EQ(expected, got[0]) << math;
    else
      EXPECT_NEAR(got[0], x, x - expected) << math;
  }
}

/// The sum 256 + 1 + 1 needs more bits than a bfloat16 has on its way.
TEST_F(CudaProducts, SumShortTypesInSinglePrecision) {
  for (auto [type, to] : {std::pair(BAECHI_CUDA_BF16, &fakecuda::toBf16),
                          {BAECHI_CUDA_F16, &fakecuda::toF16}}) {
    baechi_cuda_product product = denseProduct(1, 2, 3);
    product.factor_type = product.result_type = type;
    product.align_a = product.align_b = product.align_c = 2;
    std::vector<uint16_t> a = {to(256), to(1), to(1)},
                          b = {to(1), to(0.5F), to(1), to(2), to(1), to(-2)};
    std::vector<uint16_t> got = multiply(product, a, b, {}, 2);
    if (!usesFakeCuda() && hasNoAlgorithm())
      continue; // of such alignments
    EXPECT_EQ((std::vector<uint16_t>{to(258), to(128)}), got) << type;
    EXPECT_EQ("", failure.message());
  }
}

TEST_F(CudaProducts, AddABiasToEachRow) {
  baechi_cuda_product product = denseProduct(2, 3, 1);
  product.has_bias = 1;
  EXPECT_EQ((std::vector<float>{11, 22, 33, 12, 24, 36}),
            multiply<float>(product, {1, 2}, {1, 2, 3}, {10, 20, 30}, 6));
  EXPECT_EQ("", failure.message());
}

/// The library's first choice within the workspace needs none; one that the
/// product names takes what it needs, and no more than there is.
TEST_F(CudaProducts, RunTheAlgorithmThatTheyName) {
  if (!usesFakeCuda())
    GTEST_SKIP() << "the algorithms are the fake library's";
  const uint64_t magic = 0x616c676f72697468ULL;
  baechi_cuda_product product = denseProduct(1, 1, 1);
  product.algorithm[0] = magic;
  product.algorithm[1] = 1;
  product.algorithm[2] = 1024;
  product.algorithm[3] = product.algorithm[4] = uint64_t(4) << 32 | 4;
  multiply<float>(product, {2}, {3}, {}, 1);
  EXPECT_THAT(failure.message(),
              HasSubstr("in operator 0 'a': the profile's algorithm for a "
                        "matrix product cannot run here; measure on this GPU "
                        "with this cuBLASLt: its workspace is larger than "
                        "planned"));
  product.workspace_bytes = 1024;
  EXPECT_EQ(std::vector<float>{6}, multiply<float>(product, {2}, {3}, {}, 1));
  EXPECT_EQ("", failure.message());
  product.algorithm[0] = 1;
  multiply<float>(product, {2}, {3}, {}, 1);
  EXPECT_THAT(failure.message(), HasSubstr("with this cuBLASLt: "
                                           "CUBLAS_STATUS_ARCH_MISMATCH"));
}

/// A scratch of no bytes lies anywhere; cuBLASLt 13.1 refuses it as a
/// workspace.
TEST_F(CudaProducts, NeedNoPlaceForAWorkspaceOfNoBytes) {
  baechi_cuda_product product = denseProduct(1, 1, 1);
  product.workspace_bytes = 0;
  workspaceAt = 64;
  EXPECT_EQ(std::vector<float>{6}, multiply<float>(product, {2}, {3}, {}, 1));
  EXPECT_EQ("", failure.message());
}

TEST_F(CudaProducts, OfMathThatTheLibraryLacks) {
  if (!usesFakeCuda())
    GTEST_SKIP() << "what the library lacks is not known";
  fakecuda::FakeOptions options;
  options.refusedCompute = 77; // CUBLAS_COMPUTE_32F_FAST_TF32
  resetCuda(options);
  baechi_cuda_product product = denseProduct(1, 1, 1);
  product.math = BAECHI_CUDA_MATH_TF32;
  multiply<float>(product, {2}, {3}, {}, 1);
  EXPECT_THAT(failure.message(),
              HasSubstr("cuBLASLt has no algorithm for a matrix product of "
                        "this math and these alignments on this GPU; compile "
                        "with --cuda-math=fp32: CUBLAS_STATUS_NOT_SUPPORTED"));
}

TEST_F(CudaProducts, OfTypesThatTheLibraryLacks) {
  if (!usesFakeCuda())
    GTEST_SKIP() << "a newer library may have them";
  baechi_cuda_product product = denseProduct(1, 1, 1);
  product.factor_type = BAECHI_CUDA_BF16;
  product.result_type = BAECHI_CUDA_F16;
  multiply<uint16_t>(product, {0}, {0}, {}, 1);
  EXPECT_THAT(failure.message(),
              HasSubstr("cuBLASLt has no algorithm for a matrix product: "
                        "CUBLAS_STATUS_NOT_SUPPORTED"));
}
} // namespace

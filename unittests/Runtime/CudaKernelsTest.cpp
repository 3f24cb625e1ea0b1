//===- CudaKernelsTest.cpp - What the host code of kernels calls -*- C++
//-*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Baechi/Runtime/CudaAbi.h"
#include "CudaPrograms.h"

#include <gmock/gmock.h>

using namespace baechi::runtime;
using namespace baechi::runtime::test;
using testing::HasSubstr;

namespace {

/// One CUDA device whose arena is its argument and its result.
struct OneDevice {
  /// `more`: bytes of the arena beside those that are set and read.
  explicit OneDevice(int64_t bytes, Body body, int64_t more = 0) {
    program = makeProgram(1, bytes + more);
    program.devices[0].kind = "cuda";
    program.devices[0].name = "cuda0";
    addArgument(program, 0, 0, bytes);
    addResult(program, 0, 0, bytes);
    session = makeSession(program, {std::move(body)});
  }

  template <typename T> std::vector<T> run(std::vector<T> values) {
    if (!session)
      return {};
    size_t bytes = values.size() * sizeof(T);
    EXPECT_SUCCESS(session->setArgument(0, values.data(), bytes));
    EXPECT_SUCCESS(session->step());
    EXPECT_SUCCESS(session->getResult(0, values.data(), bytes));
    return values;
  }

  Program program;
  std::unique_ptr<Session> session;
};

struct Shape {
  bool transposeA, transposeB, accumulate;
  int64_t m, n, k, batch, slack;

  friend void PrintTo(const Shape &s, std::ostream *os) {
    *os << s.m << "x" << s.n << "x" << s.k;
  }
};

/// A, B and C lie one after the other; rows have `slack` elements more than
/// they need, matrices as many rows.
class CudaProductTest : public testing::TestWithParam<Shape> {};

TEST_P(CudaProductTest, IsTheNaiveOne) {
  Shape s = GetParam();
  int64_t rowsA = s.transposeA ? s.k : s.m, colsA = s.transposeA ? s.m : s.k;
  int64_t rowsB = s.transposeB ? s.n : s.k, colsB = s.transposeB ? s.k : s.n;
  int64_t lda = colsA + s.slack, ldb = colsB + s.slack, ldc = s.n + s.slack;
  int64_t strideA = rowsA * lda, strideB = rowsB * ldb, strideC = s.m * ldc;
  int64_t b = s.batch * strideA, c = b + s.batch * strideB;
  int64_t total = c + s.batch * strideC;
  OneDevice device(total * 4, [&](Context context, char *arena) {
    auto *base = reinterpret_cast<float *>(arena);
    baechi_operator_begin(context, 0);
    baechi_cuda_product product = denseProduct(s.m, s.n, s.k);
    product.transpose_a = s.transposeA;
    product.transpose_b = s.transposeB;
    product.ld_a = lda;
    product.stride_a = strideA;
    product.ld_b = ldb;
    product.stride_b = strideB;
    product.ld_c = ldc;
    product.stride_c = strideC;
    product.batch = s.batch;
    baechi_cuda_multiply(&product, base, base + b, base + c, nullptr, nullptr,
                         s.accumulate);
    baechi_operator_end(context, 0);
    return 0;
  });
  std::vector<float> values(size_t(total), 0.0F);
  for (size_t i = 0; i < values.size(); ++i)
    values[i] = float(int64_t(i * 7 % 13) - 6);
  std::vector<float> expected = values;
  auto at = [](int64_t i) { return size_t(i); };
  for (int64_t i = 0; i < s.batch; ++i)
    for (int64_t row = 0; row < s.m; ++row)
      for (int64_t column = 0; column < s.n; ++column) {
        float sum = 0;
        for (int64_t k = 0; k < s.k; ++k)
          sum +=
              values[at(i * strideA +
                        (s.transposeA ? k * lda + row : row * lda + k))] *
              values[at(b + i * strideB +
                        (s.transposeB ? column * ldb + k : k * ldb + column))];
        float &to = expected[at(c + i * strideC + row * ldc + column)];
        to = s.accumulate ? to + sum : sum;
      }
  EXPECT_EQ(expected, device.run(values));
  EXPECT_EQ(expected, device.run(values)); // With what the first one kept.
}

const Shape shapes[] = {
    {false, false, false, 3, 4, 5, 1, 0}, {true, false, false, 3, 4, 5, 1, 0},
    {false, true, false, 3, 4, 5, 1, 2},  {true, true, false, 3, 4, 5, 1, 1},
    {false, false, true, 7, 2, 9, 1, 3},  {false, true, true, 4, 4, 4, 3, 0},
    {true, false, true, 1, 6, 2, 5, 1},
};
INSTANTIATE_TEST_SUITE_P(Shapes, CudaProductTest, testing::ValuesIn(shapes),
                         [](const auto &info) {
                           return testing::PrintToString(info.index);
                         });

TEST(CudaCalls, CopiesAndConstants) {
  static const int32_t numbers[] = {11, 22, 33, 44};
  OneDevice device(
      64,
      [&](Context, char *arena) {
        baechi_cuda_copy(arena + 32, arena, 16);
        baechi_cuda_constant(arena + 64, numbers, 16);
        baechi_cuda_copy(arena, arena + 64, 16);
        return 0;
      },
      /*more=*/64);
  std::vector<int32_t> values(16, 5), expected(16, 5);
  std::copy(std::begin(numbers), std::end(numbers), expected.begin());
  EXPECT_EQ(expected, device.run(values));
  EXPECT_EQ(expected, device.run(values));
}

TEST(CudaCalls, DoNothingElsewhere) {
  int value = 3;
  int other = 4;
  baechi_cuda_constant(&value, &other, sizeof(value));
  baechi_cuda_copy(&value, &value, sizeof(value));
  baechi_cuda_launch(&value, 0, "none", 1, 1, 1, 1, 1, 1, 0, nullptr, 0);
  EXPECT_EQ(3, value);
}

TEST(CudaCalls, AProductOfNoSense) {
  if (!usesFakeCuda())
    GTEST_SKIP() << "cuBLASLt's own checks differ";
  Program program = makeProgram(1, 64);
  program.devices[0].kind = "cuda";
  program.devices[0].name = "cuda0";
  bodies[0] = [&](Context context, char *arena) {
    auto *base = reinterpret_cast<float *>(arena);
    baechi_operator_begin(context, 1);
    baechi_cuda_product product = denseProduct(2, 2, 2);
    product.ld_a = 1;
    baechi_cuda_multiply(&product, base, base, base, nullptr, nullptr, 0);
    baechi_operator_end(context, 1);
    return 0;
  };
  EXPECT_EQ("device cuda0, in operator 1 'b': a matrix product cannot be "
            "described: CUBLAS_STATUS_INVALID_VALUE",
            creationError(program));
}

} // namespace

//===- CudaConvolutionTest.cpp - Convolutions by the library --------------===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "CudaPrograms.h"
#include "FakeCuda/PlainConvolution.h"
#include "drivers/cuda/CudaDnn.h"

#include <cmath>
#include <gmock/gmock.h>

using namespace baechi::runtime;
using namespace baechi::runtime::test;
using testing::HasSubstr;

namespace {
/// A convolution by its sizes.
struct Shape {
  const char *name;
  bool ofFilters, innermost;
  int64_t n, channels, kinds, groups;
  std::vector<int64_t> space, window, steps, dilations;
};

void lieDensely(baechi_cuda_space_tensor &tensor, int64_t spaces,
                bool innermost) {
  int64_t next = 1;
  auto put = [&](int64_t dim) {
    tensor.strides[dim] = next;
    next *= tensor.sizes[dim];
  };
  if (innermost)
    put(1);
  for (int64_t dim = 1 + spaces; dim >= 2; --dim)
    put(dim);
  if (!innermost)
    put(1);
  put(0);
  tensor.align = 64;
}

baechi_cuda_convolution convolutionOf(const Shape &shape) {
  baechi_cuda_convolution to{};
  to.of_filters = shape.ofFilters;
  to.spaces = int64_t(shape.space.size());
  to.images.sizes[0] = to.results.sizes[0] = shape.n;
  to.images.sizes[1] = shape.channels;
  to.filters.sizes[0] = to.results.sizes[1] = shape.kinds;
  to.filters.sizes[1] = shape.channels / shape.groups;
  for (size_t i = 0; i < shape.space.size(); ++i) {
    to.images.sizes[2 + i] = shape.space[i];
    to.filters.sizes[2 + i] = shape.window[i];
    to.steps[i] = shape.steps[i];
    to.dilations[i] = shape.dilations[i];
    to.results.sizes[2 + i] =
        (shape.space[i] - (shape.window[i] - 1) * shape.dilations[i] - 1) /
            shape.steps[i] +
        1;
  }
  for (auto *tensor : {&to.images, &to.filters, &to.results})
    lieDensely(*tensor, to.spaces, shape.innermost);
  to.type = BAECHI_CUDA_F32;
  to.workspace_bytes = 65536;
  return to;
}

const Shape small{"small", false,  true,   1,      1,     1,
                  1,       {2, 2}, {1, 1}, {1, 1}, {1, 1}};

/// A device that convolves once: A, B, C and a workspace lie in its arena, a
/// slot each.
class CudaConvolutions : public testing::TestWithParam<Shape> {
protected:
  static constexpr int64_t slot = 65536;

  void SetUp() override { resetCuda(); }

  template <typename T>
  std::vector<T> convolve(const baechi_cuda_convolution &convolution,
                          std::vector<T> a, std::vector<T> b, size_t elements,
                          int steps = 1) {
    Program program = makeProgram(1, 4 * slot);
    program.devices[0].kind = "cuda";
    program.devices[0].name = "cuda0";
    for (int64_t i : {0, 1})
      addArgument(program, 0, i * slot, slot);
    addResult(program, 0, 2 * slot, slot);
    bodies[0] = [&](Context context, char *arena) {
      baechi_operator_begin(context, 0);
      baechi_cuda_convolve(&convolution, arena, arena + slot, arena + 2 * slot,
                           arena + 3 * slot);
      // Two commands, so that the run becomes a graph.
      baechi_cuda_convolve(&convolution, arena, arena + slot, arena + 2 * slot,
                           arena + 3 * slot);
      baechi_operator_end(context, 0);
      return 0;
    };
    SessionOptions options;
    options.timeline = steps == 1;
    auto created = Session::create(program, resolveBody, options);
    if (!created) {
      failure = created.takeError();
      return {};
    }
    std::unique_ptr<Session> session = std::move(*created);
    int argument = 0;
    for (std::vector<T> *values : {&a, &b}) {
      std::vector<T> whole = *values;
      whole.resize(slot / sizeof(T));
      EXPECT_SUCCESS(session->setArgument(argument++, whole.data(), slot));
    }
    for (int i = 0; i < steps && !failure; ++i)
      failure = session->step();
    std::vector<T> result(slot / sizeof(T));
    if (!failure)
      EXPECT_SUCCESS(session->getResult(0, result.data(), slot));
    result.resize(elements);
    return result;
  }

  Error failure;
};

/// Small numbers, whose products and sums are exact in single precision.
std::vector<float> numbers(int64_t count, int64_t seed) {
  std::vector<float> values;
  for (int64_t i = 0; i < count; ++i)
    values.push_back(float((i * 7 + seed * 5) % 13 - 6) / 4);
  return values;
}

/// The sums, by other loops than the fake library's: over the result's
/// elements, with each's own window.
std::vector<float> expectedOf(const Shape &s, const baechi_cuda_convolution &p,
                              const std::vector<float> &a,
                              const std::vector<float> &b) {
  auto at = [&](const baechi_cuda_space_tensor &tensor, int64_t first,
                int64_t second, const std::vector<int64_t> &space) {
    int64_t place = first * tensor.strides[0] + second * tensor.strides[1];
    for (size_t i = 0; i < space.size(); ++i)
      place += space[i] * tensor.strides[2 + i];
    return size_t(place);
  };
  auto each = [&](const int64_t *sizes, auto visit) {
    std::vector<int64_t> counters(s.space.size(), 0);
    for (;;) {
      visit(counters);
      size_t i = counters.size();
      while (i > 0 && ++counters[i - 1] == sizes[i - 1])
        counters[--i] = 0;
      if (i == 0)
        return;
    }
  };
  const auto &written = s.ofFilters ? p.filters : p.results;
  size_t elements = size_t(written.sizes[0] * written.sizes[1]);
  for (size_t i = 0; i < s.space.size(); ++i)
    elements *= size_t(written.sizes[2 + i]);
  std::vector<float> sums(elements, 0);
  int64_t inGroup = s.channels / s.groups, kindsOf = s.kinds / s.groups;
  for (int64_t n = 0; n < s.n; ++n)
    for (int64_t group = 0; group < s.groups; ++group)
      for (int64_t k = 0; k < kindsOf; ++k)
        for (int64_t c = 0; c < inGroup; ++c)
          each(p.results.sizes + 2, [&](const std::vector<int64_t> &place) {
            each(p.filters.sizes + 2, [&](const std::vector<int64_t> &in) {
              std::vector<int64_t> pixel;
              for (size_t i = 0; i < place.size(); ++i)
                pixel.push_back(place[i] * s.steps[i] + in[i] * s.dilations[i]);
              int64_t kind = group * kindsOf + k;
              float image = a[at(p.images, n, group * inGroup + c, pixel)];
              size_t filter = at(p.filters, kind, c, in);
              size_t result = at(p.results, n, kind, place);
              if (s.ofFilters)
                sums[filter] += image * b[result];
              else
                sums[result] += image * b[filter];
            });
          });
  return sums;
}

int64_t elementsOf(const baechi_cuda_space_tensor &tensor, int64_t spaces) {
  int64_t elements = 1;
  for (int64_t dim = 0; dim < 2 + spaces; ++dim)
    elements *= tensor.sizes[dim];
  return elements;
}

TEST_P(CudaConvolutions, AreSumsOfProducts) {
  const Shape &shape = GetParam();
  baechi_cuda_convolution p = convolutionOf(shape);
  cuda::ConvolutionTensors tensors = cuda::tensorsOf(p);
  std::vector<float> a = numbers(elementsOf(*tensors.a, p.spaces), 1);
  std::vector<float> b = numbers(elementsOf(*tensors.b, p.spaces), 2);
  std::vector<float> expected = expectedOf(shape, p, a, b);
  ASSERT_EQ(size_t(cuda::bytesOf(*tensors.c, p)), 4 * expected.size());
  for (int steps : {1, 4}) {
    std::vector<float> got = convolve<float>(p, a, b, expected.size(), steps);
    ASSERT_EQ("", failure.message());
    EXPECT_EQ(expected, got) << steps;
  }
  if (usesFakeCuda())
    EXPECT_GT(fakeCudaGraphLaunches(), 0);
  EXPECT_EQ("", cudaMisuse());
}

const Shape shapes[] = {
    {"plain", false, true, 2, 4, 8, 1, {6, 7}, {3, 3}, {1, 1}, {1, 1}},
    {"first", false, false, 2, 4, 8, 1, {6, 7}, {3, 3}, {1, 1}, {1, 1}},
    {"steps", false, true, 2, 8, 4, 1, {9, 8}, {3, 2}, {2, 3}, {1, 1}},
    {"dilated", false, true, 1, 4, 4, 1, {9, 9}, {3, 2}, {1, 1}, {2, 3}},
    {"groups", false, true, 2, 8, 12, 4, {5, 5}, {2, 2}, {1, 1}, {1, 1}},
    {"row", false, true, 2, 4, 4, 1, {4, 9}, {1, 5}, {1, 1}, {1, 1}},
    {"cubes",
     false,
     true,
     1,
     4,
     4,
     1,
     {4, 4, 5},
     {2, 2, 3},
     {1, 1, 1},
     {1, 1, 1}},
    {"gradient", true, true, 2, 4, 8, 1, {6, 7}, {3, 3}, {1, 1}, {1, 1}},
    {"gradientFirst", true, false, 2, 4, 8, 1, {6, 7}, {3, 3}, {1, 1}, {1, 1}},
    {"gradientSteps", true, true, 2, 8, 4, 1, {9, 8}, {3, 2}, {2, 3}, {1, 1}},
    {"gradientGroups", true, true, 2, 8, 12, 4, {5, 5}, {2, 2}, {1, 1}, {1, 1}},
};
INSTANTIATE_TEST_SUITE_P(Shapes, CudaConvolutions, testing::ValuesIn(shapes),
                         [](const testing::TestParamInfo<Shape> &info) {
                           return info.param.name;
                         });

using CudaConvolution = CudaConvolutions;

/// 1 + 2^-9 + 2^-12 is 1 + 2^-9 in TF32. An engine that rounds comes before one
/// that does not, and is left out where nothing may be rounded.
TEST_F(CudaConvolution, RoundAsAsked) {
  const float x = 1 + 0x1p-9F + 0x1p-12F;
  baechi_cuda_convolution p = convolutionOf(small);
  for (auto [math, rounded] : {std::pair(BAECHI_CUDA_MATH_FP32, x),
                               {BAECHI_CUDA_MATH_TF32, 1 + 0x1p-9F},
                               {BAECHI_CUDA_MATH_FP16, 1 + 0x1p-9F},
                               {BAECHI_CUDA_MATH_BF16, 1 + 0x1p-9F}}) {
    p.math = math;
    std::vector<float> got = convolve<float>(p, {x, x, x, x}, {1}, 4);
    ASSERT_EQ("", failure.message());
    if (usesFakeCuda())
      EXPECT_EQ(std::vector<float>(4, rounded), got) << math;
    else
      EXPECT_NEAR(got[0], x, x - rounded) << math;
  }
}

TEST_F(CudaConvolution, OfShortTypes) {
  Shape shape{"short", false, true, 1, 8, 8, 1, {2, 2}, {2, 2}, {1, 1}, {1, 1}};
  for (auto [type, to] : {std::pair(BAECHI_CUDA_BF16, &fakecuda::toBf16),
                          {BAECHI_CUDA_F16, &fakecuda::toF16}}) {
    baechi_cuda_convolution p = convolutionOf(shape);
    p.type = type;
    // 256 + 31 is no bfloat16, 288 is.
    std::vector<uint16_t> a(32, to(1)), b(256, to(1));
    a[0] = to(256);
    std::vector<uint16_t> got = convolve<uint16_t>(p, a, b, 8);
    ASSERT_EQ("", failure.message());
    EXPECT_EQ(std::vector<uint16_t>(8, to(287)), got) << type;
  }
}

/// What a profile names is made again, and refused where it is not this
/// library's or needs more than is planned.
TEST_F(CudaConvolution, ByTheEngineThatTheyName) {
  if (!usesFakeCuda())
    GTEST_SKIP() << "the engines are the fake library's";
  baechi_cuda_convolution p = convolutionOf(small);
  auto name = [&](int64_t index) {
    p.engine[0] = 1 + index;
    p.engine[1] = 1;
    p.engine[2] = int64_t(3) << 32 | 10 * index;
  };
  name(3);
  EXPECT_EQ((std::vector<float>{2, 4, 6, 8}),
            convolve<float>(p, {1, 2, 3, 4}, {2}, 4));
  EXPECT_EQ("", failure.message());
  p.workspace_bytes = 4095;
  convolve<float>(p, {1, 2, 3, 4}, {2}, 4);
  EXPECT_THAT(failure.message(),
              HasSubstr("in operator 0 'a': the profile's engine for a "
                        "convolution cannot run here; measure on this GPU with "
                        "this cuDNN: its workspace is larger than planned"));
  name(7);
  convolve<float>(p, {1, 2, 3, 4}, {2}, 4);
  EXPECT_THAT(failure.message(),
              HasSubstr("with this cuDNN: CUDNN_STATUS_BAD_PARAM"));
}

TEST_F(CudaConvolution, ThatTheLibraryLacks) {
  if (!usesFakeCuda())
    GTEST_SKIP() << "what the library lacks is not known";
  fakecuda::FakeOptions options;
  options.refusesConvolutions = true;
  resetCuda(options);
  convolve<float>(convolutionOf(small), {1, 2, 3, 4}, {2}, 4);
  EXPECT_THAT(
      failure.message(),
      HasSubstr("cuDNN has no engine for a convolution of this math and this "
                "workspace on this GPU; compile with "
                "--cuda-convolutions=generated: CUDNN_STATUS_NOT_SUPPORTED"));
}
} // namespace

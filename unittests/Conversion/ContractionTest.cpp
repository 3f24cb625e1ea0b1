//===- ContractionTest.cpp - Products of tensors in every way -*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "KernelRunner.h"
#include <map>

using namespace baechi;
using namespace baechi::test;

namespace {
/// A contraction in index notation, for example "mk,kn->mn".
struct Einsum {
  std::string a, b, c;
  std::map<char, int64_t> sizes;

  int64_t elements(const std::string &indices) const {
    int64_t count = 1;
    for (char index : indices)
      count *= sizes.at(index);
    return count;
  }
  std::string type(const std::string &indices) const {
    std::string text = "tensor<";
    for (char index : indices)
      text += std::to_string(sizes.at(index)) + "x";
    return text + "f32>";
  }
  std::string map(const std::string &indices) const {
    std::string text = "affine_map<(" + list(loops()) + ") -> (";
    return text + list(indices) + ")>";
  }
  std::string loops() const {
    std::string all;
    for (auto [index, size] : sizes)
      all += index;
    return all;
  }
  static std::string list(const std::string &indices) {
    std::string text;
    for (char index : indices)
      text += (text.empty() ? "" : ", ") + std::string(1, index);
    return text;
  }

  /// A kernel that starts from zero, or from a third argument whose buffer it
  /// may write the result into.
  std::string kernel(const std::string &implementation,
                     bool accumulates) const {
    std::string kinds;
    for (char index : loops())
      kinds += std::string(kinds.empty() ? "" : ", ") +
               (c.find(index) == std::string::npos ? "\"reduction\""
                                                   : "\"parallel\"");
    std::string start = accumulates ? "%start" : "%f";
    return "func.func private @product(%a: " + type(a) + ", %b: " + type(b) +
           (accumulates ? ", %start: " + type(c) : "") + ") -> (" + type(c) +
           (accumulates ? " {baechi.may_alias = array<i64: 2>}" : "") +
           ") attributes {baechi.kernel, baechi.implementation = \"" +
           implementation + "\"} {\n" + R"(
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : )" +
           type(c) + R"(
  %f = linalg.fill ins(%zero : f32) outs(%e : )" +
           type(c) + ") -> " + type(c) +
           "\n  %r = linalg.generic {indexing_maps = [" + map(a) + ", " +
           map(b) + ", " + map(c) + "], iterator_types = [" + kinds +
           "]} ins(%a, %b : " + type(a) + ", " + type(b) + ") outs(" + start +
           " : " + type(c) + R"() {
  ^bb0(%x: f32, %y: f32, %s: f32):
    %p = arith.mulf %x, %y : f32
    %q = arith.addf %s, %p : f32
    linalg.yield %q : f32
  } -> )" + type(c) +
           "\n  return %r : " + type(c) + "\n}\n";
  }

  /// How far a step of loop `loop` moves in the tensor.
  int64_t stride(const std::string &indices, char loop) const {
    int64_t stride = 0;
    for (char index : indices)
      stride = stride * sizes.at(index) + (index == loop);
    return stride;
  }

  std::vector<float> expected(const Array<float> &x, const Array<float> &y,
                              const std::vector<float> &start) const {
    std::vector<double> result(start.begin(), start.end());
    struct Loop {
      int64_t size, a, b, c;
    };
    std::vector<Loop> nest;
    for (char loop : loops())
      nest.push_back(
          {sizes.at(loop), stride(a, loop), stride(b, loop), stride(c, loop)});
    auto run = [&](auto &self, size_t depth, int64_t atA, int64_t atB,
                   int64_t atC) -> void {
      if (depth == nest.size()) {
        result[atC] += double(x[atA]) * y[atB];
        return;
      }
      const Loop &loop = nest[depth];
      for (int64_t i = 0; i < loop.size; ++i)
        self(self, depth + 1, atA + i * loop.a, atB + i * loop.b,
             atC + i * loop.c);
    };
    run(run, 0, 0, 0, 0);
    return {result.begin(), result.end()};
  }
};

using Sizes = std::map<char, int64_t>;
using Parameters = std::tuple<std::string, std::string>;

class Contraction : public testing::TestWithParam<Parameters> {
protected:
  Einsum einsum(Sizes sizes) {
    std::string text = std::get<0>(GetParam());
    size_t comma = text.find(','), arrow = text.find("->");
    Einsum product{text.substr(0, comma),
                   text.substr(comma + 1, arrow - comma - 1),
                   text.substr(arrow + 2), std::move(sizes)};
    std::string used = product.a + product.b;
    std::erase_if(product.sizes, [&](auto entry) {
      return used.find(entry.first) == std::string::npos;
    });
    return product;
  }
  std::string implementation() { return std::get<1>(GetParam()); }

  void checkFromZero(const Einsum &product, float tolerance = 1e-5f) {
    Kernels kernels(product.kernel(implementation(), false));
    auto a = Array<float>::numbers(product.elements(product.a), 1);
    auto b = Array<float>::numbers(product.elements(product.b), 2);
    Array<float> c(product.elements(product.c), NAN);
    kernels.call("product", a, b, c);
    expectNear(c, product.expected(a, b, std::vector<float>(c.size())),
               tolerance);
  }

  void checkAdding(const Einsum &product, float tolerance = 1e-5f) {
    Kernels kernels(product.kernel(implementation(), true));
    auto a = Array<float>::numbers(product.elements(product.a), 1);
    auto b = Array<float>::numbers(product.elements(product.b), 2);
    auto start = Array<float>::numbers(product.elements(product.c), 3);
    std::vector<float> before(start.begin(), start.end());
    Array<float> c(start.size(), NAN);
    kernels.call("product", a, b, start, c);
    expectNear(c, product.expected(a, b, before), tolerance);
    EXPECT_TRUE(std::equal(before.begin(), before.end(), start.begin()));
    // In place.
    kernels.call("product", a, b, start, start);
    expectNear(start, product.expected(a, b, before), tolerance);
  }
};

const Sizes kSmall{{'b', 3}, {'h', 2},  {'k', 19},
                   {'l', 4}, {'m', 13}, {'n', 34}};
/// Several panels and blocks of every loop, none of which divides.
const Sizes kLarge{{'b', 2}, {'k', 263}, {'l', 2}, {'m', 523}, {'n', 77}};

TEST_P(Contraction, StartsFromZero) { checkFromZero(einsum(kSmall)); }
TEST_P(Contraction, AddsToAnArgument) { checkAdding(einsum(kSmall)); }

class LargeContraction : public Contraction {};

TEST_P(LargeContraction, StartsFromZero) {
  checkFromZero(einsum(kLarge), 1e-4f);
}
TEST_P(LargeContraction, AddsToAnArgument) {
  checkAdding(einsum(kLarge), 1e-4f);
}

/// Rows in three loops, none of which fills a vector.
class FewRows : public Contraction {
protected:
  const Sizes sizes{{'b', 4}, {'h', 4}, {'k', 263}, {'m', 3}, {'n', 77}};
};

TEST_P(FewRows, StartsFromZero) { checkFromZero(einsum(sizes), 1e-4f); }
TEST_P(FewRows, AddsToAnArgument) { checkAdding(einsum(sizes), 1e-4f); }

/// Rows side by side, each term in a line of its own.
class Gradient : public Contraction {
protected:
  const Sizes sizes{{'k', 263}, {'l', 3}, {'m', 70}, {'n', 77}};
};

TEST_P(Gradient, StartsFromZero) { checkFromZero(einsum(sizes), 1e-4f); }
TEST_P(Gradient, AddsToAnArgument) { checkAdding(einsum(sizes), 1e-4f); }

std::string nameOf(const testing::TestParamInfo<Parameters> &info) {
  std::string name = std::get<0>(info.param) + "_" + std::get<1>(info.param);
  for (char &c : name)
    if (!std::isalnum(c))
      c = '_';
  return name;
}

INSTANTIATE_TEST_SUITE_P(
    Layouts, Contraction,
    testing::Combine(testing::Values("mk,kn->mn", "mk,nk->mn", "km,kn->mn",
                                     "km,nk->mn", "mk,kn->nm", "bmk,bkn->bmn",
                                     "bmhk,bnhk->bhmn", "bhmk,bkhn->bmhn",
                                     "bmk,kn->bmn", "bmk,bmn->kn",
                                     "mkl,kln->mn", "lmk,lnk->mn",
                                     "klm,kln->mn"),
                     testing::Values("openblas", "onednn", "generated")),
    nameOf);

INSTANTIATE_TEST_SUITE_P(
    Layouts, LargeContraction,
    testing::Combine(testing::Values("mk,kn->mn", "mk,nk->mn", "km,kn->mn",
                                     "km,nk->nm", "bkm,bkn->bmn", "lkm,lkn->mn",
                                     "klm,lnk->mn"),
                     testing::Values("generated")),
    nameOf);

INSTANTIATE_TEST_SUITE_P(Layouts, FewRows,
                         testing::Combine(testing::Values("mbhk,nk->hbmn",
                                                          "mbhk,kn->hbmn"),
                                          testing::Values("generated")),
                         nameOf);

INSTANTIATE_TEST_SUITE_P(Layouts, Gradient,
                         testing::Combine(testing::Values("klm,kln->mn",
                                                          "lkm,kln->mn"),
                                          testing::Values("generated")),
                         nameOf);

class ByImplementation : public testing::TestWithParam<std::string> {
protected:
  std::string with(std::string text) {
    size_t at = text.find("baechi.kernel}");
    return text.replace(at, 13,
                        "baechi.kernel, baechi.implementation = \"" +
                            GetParam() + "\"");
  }
};

TEST_P(ByImplementation, NamedMatmulThroughViews) {
  // Rows 1 to 4 of one operand, two columns of blocks of the other.
  Kernels kernels(with(R"(
func.func private @product(%a: tensor<6x8xf32>, %b: tensor<4x2x3x5xf32>) -> tensor<4x15xf32> attributes {baechi.kernel} {
  %zero = arith.constant 0.0 : f32
  %rows = tensor.extract_slice %a[1, 2] [4, 4] [1, 1] : tensor<6x8xf32> to tensor<4x4xf32>
  %block = tensor.extract_slice %b[0, 1, 0, 0] [4, 1, 3, 5] [1, 1, 1, 1] : tensor<4x2x3x5xf32> to tensor<4x3x5xf32>
  %flat = tensor.collapse_shape %block [[0], [1, 2]] : tensor<4x3x5xf32> into tensor<4x15xf32>
  %e = tensor.empty() : tensor<4x15xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<4x15xf32>) -> tensor<4x15xf32>
  %r = linalg.matmul ins(%rows, %flat : tensor<4x4xf32>, tensor<4x15xf32>) outs(%f : tensor<4x15xf32>) -> tensor<4x15xf32>
  return %r : tensor<4x15xf32>
})"));
  auto a = Array<float>::numbers(48, 1), b = Array<float>::numbers(120, 2);
  Array<float> c(60, NAN);
  kernels.call("product", a, b, c);
  std::vector<float> expected(60);
  for (int m = 0; m < 4; ++m)
    for (int n = 0; n < 15; ++n)
      for (int k = 0; k < 4; ++k)
        expected[m * 15 + n] += a[(m + 1) * 8 + 2 + k] * b[k * 30 + 15 + n];
  expectNear(c, expected);
}

TEST_P(ByImplementation, StartsFromAValue) {
  Kernels kernels(with(R"(
func.func private @product(%a: tensor<3x4xf32>, %b: tensor<4x5xf32>) -> tensor<3x5xf32> attributes {baechi.kernel} {
  %value = arith.constant 2.5 : f32
  %e = tensor.empty() : tensor<3x5xf32>
  %f = linalg.fill ins(%value : f32) outs(%e : tensor<3x5xf32>) -> tensor<3x5xf32>
  %r = linalg.matmul ins(%a, %b : tensor<3x4xf32>, tensor<4x5xf32>) outs(%f : tensor<3x5xf32>) -> tensor<3x5xf32>
  return %r : tensor<3x5xf32>
})"));
  auto a = Array<float>::numbers(12, 1), b = Array<float>::numbers(20, 2);
  Array<float> c(15, NAN);
  kernels.call("product", a, b, c);
  std::vector<float> expected(15, 2.5f);
  for (int m = 0; m < 3; ++m)
    for (int n = 0; n < 5; ++n)
      for (int k = 0; k < 4; ++k)
        expected[m * 5 + n] += a[m * 4 + k] * b[k * 5 + n];
  expectNear(c, expected);
}

TEST_P(ByImplementation, SumOfProducts) {
  // Two products of one kind, that start from an argument.
  Kernels kernels(with(R"(
func.func private @product(%a: tensor<70x6xf32>, %b: tensor<70x80xf32>, %c: tensor<70x6xf32>, %d: tensor<70x80xf32>, %start: tensor<6x80xf32>) -> (tensor<6x80xf32> {baechi.may_alias = array<i64: 4>}) attributes {baechi.kernel} {
  %r = linalg.generic {indexing_maps = [affine_map<(m, n, k) -> (k, m)>, affine_map<(m, n, k) -> (k, n)>, affine_map<(m, n, k) -> (m, n)>], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%a, %b : tensor<70x6xf32>, tensor<70x80xf32>) outs(%start : tensor<6x80xf32>) {
  ^bb0(%x: f32, %y: f32, %s: f32):
    %p = arith.mulf %x, %y : f32
    %q = arith.addf %s, %p : f32
    linalg.yield %q : f32
  } -> tensor<6x80xf32>
  %t = linalg.generic {indexing_maps = [affine_map<(m, n, k) -> (k, m)>, affine_map<(m, n, k) -> (k, n)>, affine_map<(m, n, k) -> (m, n)>], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%c, %d : tensor<70x6xf32>, tensor<70x80xf32>) outs(%r : tensor<6x80xf32>) {
  ^bb0(%x: f32, %y: f32, %s: f32):
    %p = arith.mulf %x, %y : f32
    %q = arith.addf %s, %p : f32
    linalg.yield %q : f32
  } -> tensor<6x80xf32>
  return %t : tensor<6x80xf32>
})"));
  auto a = Array<float>::numbers(420, 1), b = Array<float>::numbers(5600, 2),
       c = Array<float>::numbers(420, 3), d = Array<float>::numbers(5600, 4),
       start = Array<float>::numbers(480, 5);
  std::vector<float> expected(start.begin(), start.end());
  for (int m = 0; m < 6; ++m)
    for (int n = 0; n < 80; ++n)
      for (int k = 0; k < 70; ++k)
        expected[m * 80 + n] +=
            a[k * 6 + m] * b[k * 80 + n] + c[k * 6 + m] * d[k * 80 + n];
  Array<float> result(480, NAN);
  kernels.call("product", a, b, c, d, start, result);
  expectNear(result, expected);
  kernels.call("product", a, b, c, d, start, start);
  expectNear(start, expected);
}

TEST_P(ByImplementation, Convolution) {
  Kernels kernels(with(R"(
func.func private @conv(%x: tensor<2x8x7x4xf32>, %w: tensor<3x3x4x6xf32>) -> tensor<2x6x5x6xf32> attributes {baechi.kernel} {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<2x6x5x6xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<2x6x5x6xf32>) -> tensor<2x6x5x6xf32>
  %r = linalg.generic {indexing_maps = [affine_map<(n, y, x, f, i, j, c) -> (n, y + i, x + j, c)>, affine_map<(n, y, x, f, i, j, c) -> (i, j, c, f)>, affine_map<(n, y, x, f, i, j, c) -> (n, y, x, f)>],
      iterator_types = ["parallel", "parallel", "parallel", "parallel", "reduction", "reduction", "reduction"]}
      ins(%x, %w : tensor<2x8x7x4xf32>, tensor<3x3x4x6xf32>) outs(%f : tensor<2x6x5x6xf32>) {
  ^bb0(%a: f32, %b: f32, %s: f32):
    %p = arith.mulf %a, %b : f32
    %q = arith.addf %s, %p : f32
    linalg.yield %q : f32
  } -> tensor<2x6x5x6xf32>
  return %r : tensor<2x6x5x6xf32>
})"));
  auto x = Array<float>::numbers(2 * 8 * 7 * 4, 1);
  auto w = Array<float>::numbers(3 * 3 * 4 * 6, 2);
  Array<float> y(2 * 6 * 5 * 6, NAN);
  kernels.call("conv", x, w, y);
  std::vector<float> expected(y.size());
  for (int n = 0; n < 2; ++n)
    for (int r = 0; r < 6; ++r)
      for (int s = 0; s < 5; ++s)
        for (int f = 0; f < 6; ++f)
          for (int i = 0; i < 3; ++i)
            for (int j = 0; j < 3; ++j)
              for (int c = 0; c < 4; ++c)
                expected[((n * 6 + r) * 5 + s) * 6 + f] +=
                    x[((n * 8 + r + i) * 7 + s + j) * 4 + c] *
                    w[((i * 3 + j) * 4 + c) * 6 + f];
  expectNear(y, expected);
}

INSTANTIATE_TEST_SUITE_P(Host, ByImplementation,
                         testing::Values("openblas", "onednn", "generated"));
} // namespace

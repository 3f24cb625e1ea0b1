//===- HostKernelsTest.cpp - Generated host code against plain loops -===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "KernelRunner.h"
#include <cmath>

using namespace baechi;
using namespace baechi::test;

TEST(HostKernels, ElementwiseWithMathFunctions) {
  Kernels kernels(R"(
#map = affine_map<(d0, d1) -> (d0, d1)>
#row = affine_map<(d0, d1) -> (d1)>
func.func private @bias_tanh(%x: tensor<5x37xf32>, %b: tensor<37xf32>) -> tensor<5x37xf32> attributes {baechi.kernel} {
  %e = tensor.empty() : tensor<5x37xf32>
  %r = linalg.generic {indexing_maps = [#map, #row, #map], iterator_types = ["parallel", "parallel"]}
      ins(%x, %b : tensor<5x37xf32>, tensor<37xf32>) outs(%e : tensor<5x37xf32>) {
  ^bb0(%in: f32, %bias: f32, %out: f32):
    %s = arith.addf %in, %bias : f32
    %t = math.tanh %s : f32
    linalg.yield %t : f32
  } -> tensor<5x37xf32>
  return %r : tensor<5x37xf32>
})");
  auto x = Array<float>::numbers(5 * 37), b = Array<float>::numbers(37, 2);
  Array<float> y(5 * 37, NAN);
  kernels.call("bias_tanh", x, b, y);
  std::vector<float> expected;
  for (int i = 0; i < 5; ++i)
    for (int j = 0; j < 37; ++j)
      expected.push_back(std::tanh(x[i * 37 + j] + b[j]));
  expectNear(y, expected, 1e-6f);
}

TEST(HostKernels, SoftmaxRowGroup) {
  Kernels kernels(R"(
#map = affine_map<(d0, d1) -> (d0, d1)>
#row = affine_map<(d0, d1) -> (d0)>
func.func private @softmax(%x: tensor<8x100xf32>) -> tensor<8x100xf32> attributes {baechi.kernel} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c8 = arith.constant 8 : index
  %ninf = arith.constant 0xFF800000 : f32
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<8x100xf32>
  %r = scf.for %i = %c0 to %c8 step %c1 iter_args(%out = %e) -> tensor<8x100xf32> {
    %row = tensor.extract_slice %x[%i, 0] [1, 100] [1, 1] : tensor<8x100xf32> to tensor<1x100xf32>
    %me = tensor.empty() : tensor<1xf32>
    %mf = linalg.fill ins(%ninf : f32) outs(%me : tensor<1xf32>) -> tensor<1xf32>
    %m = linalg.generic {indexing_maps = [#map, #row], iterator_types = ["parallel", "reduction"]}
        ins(%row : tensor<1x100xf32>) outs(%mf : tensor<1xf32>) {
    ^bb0(%v: f32, %a: f32):
      %0 = arith.maximumf %v, %a : f32
      linalg.yield %0 : f32
    } -> tensor<1xf32>
    %ee = tensor.empty() : tensor<1x100xf32>
    %ex = linalg.generic {indexing_maps = [#map, #row, #map], iterator_types = ["parallel", "parallel"]}
        ins(%row, %m : tensor<1x100xf32>, tensor<1xf32>) outs(%ee : tensor<1x100xf32>) {
    ^bb0(%v: f32, %a: f32, %o: f32):
      %0 = arith.subf %v, %a : f32
      %1 = math.exp %0 : f32
      linalg.yield %1 : f32
    } -> tensor<1x100xf32>
    %sf = linalg.fill ins(%zero : f32) outs(%me : tensor<1xf32>) -> tensor<1xf32>
    %sum = linalg.generic {indexing_maps = [#map, #row], iterator_types = ["parallel", "reduction"]}
        ins(%ex : tensor<1x100xf32>) outs(%sf : tensor<1xf32>) {
    ^bb0(%v: f32, %a: f32):
      %0 = arith.addf %v, %a : f32
      linalg.yield %0 : f32
    } -> tensor<1xf32>
    %slot = tensor.extract_slice %out[%i, 0] [1, 100] [1, 1] : tensor<8x100xf32> to tensor<1x100xf32>
    %d = linalg.generic {indexing_maps = [#map, #row, #map], iterator_types = ["parallel", "parallel"]}
        ins(%ex, %sum : tensor<1x100xf32>, tensor<1xf32>) outs(%slot : tensor<1x100xf32>) {
    ^bb0(%v: f32, %a: f32, %o: f32):
      %0 = arith.divf %v, %a : f32
      linalg.yield %0 : f32
    } -> tensor<1x100xf32>
    %ins = tensor.insert_slice %d into %out[%i, 0] [1, 100] [1, 1] : tensor<1x100xf32> into tensor<8x100xf32>
    scf.yield %ins : tensor<8x100xf32>
  }
  return %r : tensor<8x100xf32>
})");
  auto x = Array<float>::numbers(800);
  x[3] = -INFINITY; // A masked element.
  Array<float> y(800, NAN);
  kernels.call("softmax", x, y);
  std::vector<float> expected(800);
  for (int i = 0; i < 8; ++i) {
    float most = *std::max_element(&x[i * 100], &x[i * 100] + 100), sum = 0;
    for (int j = 0; j < 100; ++j)
      sum += expected[i * 100 + j] = std::exp(x[i * 100 + j] - most);
    for (int j = 0; j < 100; ++j)
      expected[i * 100 + j] /= sum;
  }
  expectNear(y, expected, 1e-6f);
}

/// A sum of no products is what it starts from.
TEST(HostKernels, ProductOfNothing) {
  Kernels kernels(R"(
func.func private @nothing(%a: tensor<4x0xf32>, %b: tensor<0x5xf32>) -> tensor<4x5xf32> attributes {baechi.kernel} {
  %two = arith.constant 2.0 : f32
  %e = tensor.empty() : tensor<4x5xf32>
  %f = linalg.fill ins(%two : f32) outs(%e : tensor<4x5xf32>) -> tensor<4x5xf32>
  %r = linalg.matmul ins(%a, %b : tensor<4x0xf32>, tensor<0x5xf32>) outs(%f : tensor<4x5xf32>) -> tensor<4x5xf32>
  return %r : tensor<4x5xf32>
})");
  // What lies where there are no elements must not be read.
  Array<float> a(20, 3), b(20, 7), c(20, NAN);
  kernels.call("nothing", a, b, c);
  expectNear(c, std::vector<float>(20, 2), 0);
}

TEST(HostKernels, GatherThroughTensorExtract) {
  Kernels kernels(R"(
#id = affine_map<(d0, d1) -> (d0)>
#out = affine_map<(d0, d1) -> (d0, d1)>
func.func private @gather(%table: tensor<11x6xf32>, %ids: tensor<4xi32>) -> tensor<4x6xf32> attributes {baechi.kernel} {
  %e = tensor.empty() : tensor<4x6xf32>
  %r = linalg.generic {indexing_maps = [#id, #out], iterator_types = ["parallel", "parallel"]}
      ins(%ids : tensor<4xi32>) outs(%e : tensor<4x6xf32>) {
  ^bb0(%id: i32, %o: f32):
    %row = arith.index_cast %id : i32 to index
    %col = linalg.index 1 : index
    %v = tensor.extract %table[%row, %col] : tensor<11x6xf32>
    linalg.yield %v : f32
  } -> tensor<4x6xf32>
  return %r : tensor<4x6xf32>
})");
  auto table = Array<float>::numbers(66);
  Array<int32_t> ids{10, 0, 3, 3};
  Array<float> y(24);
  kernels.call("gather", table, ids, y);
  std::vector<float> expected;
  for (int32_t id : ids)
    for (int j = 0; j < 6; ++j)
      expected.push_back(table[id * 6 + j]);
  expectNear(y, expected, 0);
}

TEST(HostKernels, ScatterAsOneHotContraction) {
  Kernels kernels(R"(
func.func private @one_hot(%ids: tensor<7xi64>) -> (tensor<7x5xf32>, tensor<7x5xi1>) attributes {baechi.kernel} {
  %zero = arith.constant 0.0 : f32
  %one = arith.constant 1.0 : f32
  %e = tensor.empty() : tensor<7x5xf32>
  %m = tensor.empty() : tensor<7x5xi1>
  %r:2 = linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d0)>, affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d0, d1)>], iterator_types = ["parallel", "parallel"]}
      ins(%ids : tensor<7xi64>) outs(%e, %m : tensor<7x5xf32>, tensor<7x5xi1>) {
  ^bb0(%id: i64, %o: f32, %p: i1):
    %j = linalg.index 1 : index
    %k = arith.index_cast %j : index to i64
    %c = arith.cmpi eq, %id, %k : i64
    %v = arith.select %c, %one, %zero : f32
    linalg.yield %v, %c : f32, i1
  } -> (tensor<7x5xf32>, tensor<7x5xi1>)
  return %r#0, %r#1 : tensor<7x5xf32>, tensor<7x5xi1>
}
func.func private @scatter_add(%hot: tensor<7x5xf32>, %g: tensor<7x3xf32>) -> tensor<5x3xf32> attributes {baechi.kernel} {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<5x3xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<5x3xf32>) -> tensor<5x3xf32>
  %r = linalg.generic {indexing_maps = [affine_map<(m, n, k) -> (k, m)>, affine_map<(m, n, k) -> (k, n)>, affine_map<(m, n, k) -> (m, n)>], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%hot, %g : tensor<7x5xf32>, tensor<7x3xf32>) outs(%f : tensor<5x3xf32>) {
  ^bb0(%a: f32, %b: f32, %c: f32):
    %p = arith.mulf %a, %b : f32
    %s = arith.addf %c, %p : f32
    linalg.yield %s : f32
  } -> tensor<5x3xf32>
  return %r : tensor<5x3xf32>
})");
  Array<int64_t> ids{4, 0, 4, 2, 1, 1, 4};
  Array<float> hot(35, NAN), sums(15, NAN);
  Array<uint8_t> mask(35, 77);
  auto g = Array<float>::numbers(21);
  kernels.call("one_hot", ids, hot, mask);
  kernels.call("scatter_add", hot, g, sums);
  std::vector<float> expected(15);
  for (int i = 0; i < 7; ++i)
    for (int j = 0; j < 3; ++j)
      expected[ids[i] * 3 + j] += g[i * 3 + j];
  expectNear(sums, expected);
  for (int i = 0; i < 7; ++i)
    for (int j = 0; j < 5; ++j)
      ASSERT_EQ(mask[i * 5 + j], ids[i] == j ? 1 : 0);
}

TEST(HostKernels, EqualResults) {
  Kernels kernels(R"(
func.func private @twice(%x: tensor<2x3xf32>) -> (tensor<2x3xf32>, tensor<2x3xf32>) attributes {baechi.kernel} {
  %e = tensor.empty() : tensor<2x3xf32>
  %y = linalg.exp ins(%x : tensor<2x3xf32>) outs(%e : tensor<2x3xf32>) -> tensor<2x3xf32>
  return %y, %y : tensor<2x3xf32>, tensor<2x3xf32>
})");
  auto x = Array<float>::numbers(6);
  Array<float> first(6, NAN), second(6, NAN);
  kernels.call("twice", x, first, second);
  EXPECT_NEAR(first[5], std::exp(x[5]), 1e-4f);
  expectNear(second, std::vector<float>(first.begin(), first.end()), 0);
}

TEST(HostKernels, RowsOfNone) {
  Kernels kernels(R"(
func.func private @none(%x: tensor<3x0xf32>, %y: tensor<2xf32>) -> (tensor<3x0xf32>, tensor<2xf32>) attributes {baechi.kernel} {
  %e = tensor.empty() : tensor<3x0xf32>
  %z = linalg.exp ins(%x : tensor<3x0xf32>) outs(%e : tensor<3x0xf32>) -> tensor<3x0xf32>
  %f = tensor.empty() : tensor<2xf32>
  %w = linalg.exp ins(%y : tensor<2xf32>) outs(%f : tensor<2xf32>) -> tensor<2xf32>
  return %z, %w : tensor<3x0xf32>, tensor<2xf32>
})");
  auto y = Array<float>::numbers(2);
  Array<float> none(0), w(2, NAN);
  kernels.call("none", none, y, none, w);
  EXPECT_NEAR(w[1], std::exp(y[1]), 1e-5f);
}

TEST(HostKernels, ColumnReduction) {
  Kernels kernels(R"(
func.func private @sum(%x: tensor<9x33xf32>) -> (tensor<33xf32>, tensor<f32>) attributes {baechi.kernel} {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<33xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<33xf32>) -> tensor<33xf32>
  %r = linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d1)>], iterator_types = ["reduction", "parallel"]}
      ins(%x : tensor<9x33xf32>) outs(%f : tensor<33xf32>) {
  ^bb0(%v: f32, %a: f32):
    %s = arith.addf %v, %a : f32
    linalg.yield %s : f32
  } -> tensor<33xf32>
  %e0 = tensor.empty() : tensor<f32>
  %f0 = linalg.fill ins(%zero : f32) outs(%e0 : tensor<f32>) -> tensor<f32>
  %r0 = linalg.generic {indexing_maps = [affine_map<(d0) -> (d0)>, affine_map<(d0) -> ()>], iterator_types = ["reduction"]}
      ins(%r : tensor<33xf32>) outs(%f0 : tensor<f32>) {
  ^bb0(%v: f32, %a: f32):
    %s = arith.addf %v, %a : f32
    linalg.yield %s : f32
  } -> tensor<f32>
  return %r, %r0 : tensor<33xf32>, tensor<f32>
})");
  auto x = Array<float>::numbers(9 * 33);
  Array<float> columns(33, NAN), total(1, NAN);
  kernels.call("sum", x, columns, total);
  std::vector<float> expected(33);
  float sum = 0;
  for (int i = 0; i < 9; ++i)
    for (int j = 0; j < 33; ++j) {
      expected[j] += x[i * 33 + j];
      sum += x[i * 33 + j];
    }
  expectNear(columns, expected);
  expectNear(total, {sum}, 1e-4f);
}

TEST(HostKernels, ConcatenationByInsertSlices) {
  Kernels kernels(R"(
func.func private @concat(%a: tensor<3x2xf32>, %b: tensor<3x4xf32>) -> tensor<3x6xf32> attributes {baechi.kernel} {
  %e = tensor.empty() : tensor<3x6xf32>
  %0 = tensor.insert_slice %a into %e[0, 0] [3, 2] [1, 1] : tensor<3x2xf32> into tensor<3x6xf32>
  %1 = tensor.insert_slice %b into %0[0, 2] [3, 4] [1, 1] : tensor<3x4xf32> into tensor<3x6xf32>
  return %1 : tensor<3x6xf32>
})");
  auto a = Array<float>::numbers(6), b = Array<float>::numbers(12, 2);
  Array<float> y(18, NAN);
  kernels.call("concat", a, b, y);
  std::vector<float> expected;
  for (int i = 0; i < 3; ++i) {
    expected.insert(expected.end(), &a[i * 2], &a[i * 2] + 2);
    expected.insert(expected.end(), &b[i * 4], &b[i * 4] + 4);
  }
  expectNear(y, expected, 0);
}

TEST(HostKernels, ViewsAndLargeScratch) {
  // The intermediate is larger than what goes to the stack.
  Kernels kernels(R"(
#map = affine_map<(d0, d1) -> (d0, d1)>
#t = affine_map<(d0, d1) -> (d1, d0)>
func.func private @twice(%x: tensor<40000xf32>) -> tensor<200x100xf32> attributes {baechi.kernel} {
  %v = tensor.expand_shape %x [[0, 1]] output_shape [200, 200] : tensor<40000xf32> into tensor<200x200xf32>
  %s = tensor.extract_slice %v[0, 50] [200, 100] [1, 1] : tensor<200x200xf32> to tensor<200x100xf32>
  %e = tensor.empty() : tensor<100x200xf32>
  %y = linalg.generic {indexing_maps = [#t, #map], iterator_types = ["parallel", "parallel"]}
      ins(%s : tensor<200x100xf32>) outs(%e : tensor<100x200xf32>) {
  ^bb0(%in: f32, %o: f32):
    %0 = arith.addf %in, %in : f32
    linalg.yield %0 : f32
  } -> tensor<100x200xf32>
  %e2 = tensor.empty() : tensor<200x100xf32>
  %z = linalg.generic {indexing_maps = [#t, #map], iterator_types = ["parallel", "parallel"]}
      ins(%y : tensor<100x200xf32>) outs(%e2 : tensor<200x100xf32>) {
  ^bb0(%in: f32, %o: f32):
    %0 = arith.mulf %in, %in : f32
    linalg.yield %0 : f32
  } -> tensor<200x100xf32>
  return %z : tensor<200x100xf32>
})");
  EXPECT_EQ(kernels.scratchBytes("twice"), 80000);
  auto x = Array<float>::numbers(40000);
  Array<float> y(20000, NAN);
  kernels.call("twice", x, y);
  std::vector<float> expected;
  for (int i = 0; i < 200; ++i)
    for (int j = 0; j < 100; ++j)
      expected.push_back(4 * x[i * 200 + 50 + j] * x[i * 200 + 50 + j]);
  expectNear(y, expected);
}

//===- InPlaceTest.cpp - Results in the buffers of arguments -*- C++ -*-===//
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

TEST(InPlace, UpdateOfSeveralStates) {
  // One elementwise operation with two results, each in its own argument; long
  // enough to be vectorized.
  Kernels kernels(R"(
#map = affine_map<(d0) -> (d0)>
func.func private @momentum(%p: tensor<1003xf32>, %v: tensor<1003xf32>, %g: tensor<1003xf32>)
    -> (tensor<1003xf32> {baechi.may_alias = array<i64: 0>}, tensor<1003xf32> {baechi.may_alias = array<i64: 1, 2>}) attributes {baechi.kernel} {
  %decay = arith.constant 0.9 : f32
  %rate = arith.constant 0.1 : f32
  %e = tensor.empty() : tensor<1003xf32>
  %r:2 = linalg.generic {indexing_maps = [#map, #map, #map, #map, #map], iterator_types = ["parallel"]}
      ins(%p, %v, %g : tensor<1003xf32>, tensor<1003xf32>, tensor<1003xf32>) outs(%e, %e : tensor<1003xf32>, tensor<1003xf32>) {
  ^bb0(%x: f32, %y: f32, %z: f32, %o0: f32, %o1: f32):
    %0 = arith.mulf %y, %decay : f32
    %1 = arith.addf %0, %z : f32
    %2 = arith.mulf %1, %rate : f32
    %3 = arith.subf %x, %2 : f32
    linalg.yield %3, %1 : f32, f32
  } -> (tensor<1003xf32>, tensor<1003xf32>)
  return %r#0, %r#1 : tensor<1003xf32>, tensor<1003xf32>
})");
  EXPECT_EQ(kernels.scratchBytes("momentum"), 0);
  auto p = Array<float>::numbers(1003, 1), v = Array<float>::numbers(1003, 2),
       g = Array<float>::numbers(1003, 3);
  std::vector<float> nextP, nextV;
  for (int i = 0; i < 1003; ++i) {
    nextV.push_back(v[i] * 0.9f + g[i]);
    nextP.push_back(p[i] - nextV[i] * 0.1f);
  }
  Array<float> outP(1003, NAN), outV(1003, NAN);
  kernels.call("momentum", p, v, g, outP, outV);
  expectNear(outP, nextP);
  expectNear(outV, nextV);
  kernels.call("momentum", p, v, g, outP, g);
  expectNear(g, nextV);
  g = Array<float>::numbers(1003, 3);
  kernels.call("momentum", p, v, g, p, v);
  expectNear(p, nextP);
  expectNear(v, nextV);
}

TEST(InPlace, ArgumentAsInitialValue) {
  // Bufferization copies the argument into the result first.
  Kernels kernels(R"(
#map = affine_map<(d0) -> (d0)>
func.func private @add(%x: tensor<100xf32>, %y: tensor<100xf32>) -> (tensor<100xf32> {baechi.may_alias = array<i64: 0, 1>}) attributes {baechi.kernel} {
  %r = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel"]}
      ins(%y : tensor<100xf32>) outs(%x : tensor<100xf32>) {
  ^bb0(%a: f32, %o: f32):
    %0 = arith.subf %o, %a : f32
    linalg.yield %0 : f32
  } -> tensor<100xf32>
  return %r : tensor<100xf32>
})");
  for (int place : {0, 1, 2}) {
    auto x = Array<float>::numbers(100, 1), y = Array<float>::numbers(100, 2);
    Array<float> other(100, NAN);
    std::vector<float> expected;
    for (int i = 0; i < 100; ++i)
      expected.push_back(x[i] - y[i]);
    Array<float> &out = place == 0 ? x : place == 1 ? y : other;
    kernels.call("add", x, y, out);
    expectNear(out, expected);
  }
}

TEST(InPlace, ResultWrittenBeforeTheArgumentIsRead) {
  // The fill of the result would destroy the argument.
  Kernels kernels(R"(
#map = affine_map<(d0) -> (d0)>
func.func private @late(%x: tensor<100xf32>) -> (tensor<100xf32> {baechi.may_alias = array<i64: 0>}) attributes {baechi.kernel} {
  %one = arith.constant 1.0 : f32
  %e = tensor.empty() : tensor<100xf32>
  %f = linalg.fill ins(%one : f32) outs(%e : tensor<100xf32>) -> tensor<100xf32>
  %r = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel"]}
      ins(%x : tensor<100xf32>) outs(%f : tensor<100xf32>) {
  ^bb0(%a: f32, %o: f32):
    %0 = arith.addf %o, %a : f32
    linalg.yield %0 : f32
  } -> tensor<100xf32>
  return %r : tensor<100xf32>
})");
  auto x = Array<float>::numbers(100);
  std::vector<float> expected;
  for (float value : x)
    expected.push_back(value + 1);
  kernels.call("late", x, x);
  expectNear(x, expected);
}

TEST(InPlace, ArgumentReadInAnotherOrder) {
  Kernels kernels(R"(
func.func private @reverse(%x: tensor<100xf32>) -> (tensor<100xf32> {baechi.may_alias = array<i64: 0>}) attributes {baechi.kernel} {
  %e = tensor.empty() : tensor<100xf32>
  %r = linalg.generic {indexing_maps = [affine_map<(d0) -> (99 - d0)>, affine_map<(d0) -> (d0)>], iterator_types = ["parallel"]}
      ins(%x : tensor<100xf32>) outs(%e : tensor<100xf32>) {
  ^bb0(%a: f32, %o: f32):
    linalg.yield %a : f32
  } -> tensor<100xf32>
  return %r : tensor<100xf32>
})");
  auto x = Array<float>::numbers(100);
  std::vector<float> expected(x.begin(), x.end());
  std::reverse(expected.begin(), expected.end());
  kernels.call("reverse", x, x);
  expectNear(x, expected, 0);
}

TEST(InPlace, RowsOfATable) {
  // Rows are added one after the other; the same row twice. Only when the table
  // is another buffer than the result is it copied.
  Kernels kernels(R"(
#map = affine_map<(d0) -> (d0)>
func.func private @scatter(%table: tensor<6x4xf32>, %rows: tensor<3xi32>, %update: tensor<3x4xf32>)
    -> (tensor<6x4xf32> {baechi.may_alias = array<i64: 0>}) attributes {baechi.kernel} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c3 = arith.constant 3 : index
  %r = scf.for %i = %c0 to %c3 step %c1 iter_args(%now = %table) -> (tensor<6x4xf32>) {
    %row = tensor.extract %rows[%i] : tensor<3xi32>
    %at = arith.index_cast %row : i32 to index
    %old = tensor.extract_slice %now[%at, 0] [1, 4] [1, 1] : tensor<6x4xf32> to tensor<4xf32>
    %new = tensor.extract_slice %update[%i, 0] [1, 4] [1, 1] : tensor<3x4xf32> to tensor<4xf32>
    %e = tensor.empty() : tensor<4xf32>
    %sum = linalg.generic {indexing_maps = [#map, #map, #map], iterator_types = ["parallel"]}
        ins(%old, %new : tensor<4xf32>, tensor<4xf32>) outs(%e : tensor<4xf32>) {
    ^bb0(%a: f32, %b: f32, %o: f32):
      %s = arith.addf %a, %b : f32
      linalg.yield %s : f32
    } -> tensor<4xf32>
    %next = tensor.insert_slice %sum into %now[%at, 0] [1, 4] [1, 1] : tensor<4xf32> into tensor<6x4xf32>
    scf.yield %next : tensor<6x4xf32>
  }
  return %r : tensor<6x4xf32>
})");
  EXPECT_EQ(kernels.scratchBytes("scatter"), 0);
  Array<int32_t> rows(3, 5);
  rows[1] = 2;
  auto update = Array<float>::numbers(12, 2);
  for (bool inPlace : {false, true}) {
    auto table = Array<float>::numbers(24, 1);
    std::vector<float> before(table.begin(), table.end()), expected = before;
    for (int i = 0; i < 3; ++i)
      for (int j = 0; j < 4; ++j)
        expected[rows[i] * 4 + j] += update[i * 4 + j];
    Array<float> other(24, NAN);
    kernels.call("scatter", table, rows, update, inPlace ? table : other);
    expectNear(inPlace ? table : other, expected);
    if (!inPlace)
      expectNear(table, before, 0);
  }
}

TEST(InPlace, ChangedArgumentThatIsReadLater) {
  // The attribute is wrong: what the change is made of is read of the argument
  // after an element was changed.
  Kernels kernels(R"(
func.func private @shift(%x: tensor<8xf32>) -> (tensor<8xf32> {baechi.may_alias = array<i64: 0>}) attributes {baechi.kernel} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c7 = arith.constant 7 : index
  %r = scf.for %i = %c0 to %c7 step %c1 iter_args(%now = %x) -> (tensor<8xf32>) {
    %value = tensor.extract %x[%i] : tensor<8xf32>
    %at = arith.addi %i, %c1 : index
    %next = tensor.insert %value into %now[%at] : tensor<8xf32>
    scf.yield %next : tensor<8xf32>
  }
  return %r : tensor<8xf32>
})");
  auto x = Array<float>::numbers(8, 1);
  std::vector<float> expected{x[0]};
  expected.insert(expected.end(), x.begin(), x.end() - 1);
  kernels.call("shift", x, x);
  expectNear(x, expected, 0);
}

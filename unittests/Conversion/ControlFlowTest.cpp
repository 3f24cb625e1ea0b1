//===- ControlFlowTest.cpp - Loops of the model inside kernels -*- C++ -*-===//
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

TEST(ControlFlow, WhileCarriesABuffer) {
  // Each iteration reverses and doubles what the last one made: the buffer that
  // is read must not be the one that is written.
  Kernels kernels(R"(
func.func private @loop(%x: tensor<4xf32>, %n: tensor<i32>) -> tensor<4xf32> attributes {baechi.kernel} {
  %zero = arith.constant dense<0> : tensor<i32>
  %one = arith.constant 1 : i32
  %r:2 = scf.while (%i = %zero, %y = %x) : (tensor<i32>, tensor<4xf32>) -> (tensor<i32>, tensor<4xf32>) {
    %a = tensor.extract %i[] : tensor<i32>
    %b = tensor.extract %n[] : tensor<i32>
    %c = arith.cmpi slt, %a, %b : i32
    scf.condition(%c) %i, %y : tensor<i32>, tensor<4xf32>
  } do {
  ^bb0(%i: tensor<i32>, %y: tensor<4xf32>):
    %ie = tensor.empty() : tensor<i32>
    %j = linalg.generic {indexing_maps = [affine_map<() -> ()>, affine_map<() -> ()>], iterator_types = []}
        ins(%i : tensor<i32>) outs(%ie : tensor<i32>) {
    ^bb0(%p: i32, %q: i32):
      %v = arith.addi %p, %one : i32
      linalg.yield %v : i32
    } -> tensor<i32>
    %e = tensor.empty() : tensor<4xf32>
    %z = linalg.generic {indexing_maps = [affine_map<(d0) -> (3 - d0)>, affine_map<(d0) -> (d0)>], iterator_types = ["parallel"]}
        ins(%y : tensor<4xf32>) outs(%e : tensor<4xf32>) {
    ^bb0(%p: f32, %q: f32):
      %v = arith.addf %p, %p : f32
      linalg.yield %v : f32
    } -> tensor<4xf32>
    scf.yield %j, %z : tensor<i32>, tensor<4xf32>
  }
  return %r#1 : tensor<4xf32>
})");
  for (int n : {0, 1, 2, 5}) {
    Array<float> x{1, 2, 3, 4}, y(4, NAN);
    Array<int32_t> count{n};
    kernels.call("loop", x, count, y);
    std::vector<float> expected{1, 2, 3, 4};
    for (int i = 0; i < n; ++i) {
      std::reverse(expected.begin(), expected.end());
      for (float &value : expected)
        value *= 2;
    }
    expectNear(y, expected, 0);
    EXPECT_EQ(x[0], 1) << "an argument was written";
  }
}

TEST(ControlFlow, WhileComputesInItsCondition) {
  // The condition's region makes a new buffer that the body hands on.
  Kernels kernels(R"(
func.func private @loop(%x: tensor<4xf32>) -> tensor<4xf32> attributes {baechi.kernel} {
  %limit = arith.constant 100.0 : f32
  %c0 = arith.constant 0 : index
  %r = scf.while (%y = %x) : (tensor<4xf32>) -> tensor<4xf32> {
    %e = tensor.empty() : tensor<4xf32>
    %z = linalg.generic {indexing_maps = [affine_map<(d0) -> (3 - d0)>, affine_map<(d0) -> (d0)>], iterator_types = ["parallel"]}
        ins(%y : tensor<4xf32>) outs(%e : tensor<4xf32>) {
    ^bb0(%p: f32, %q: f32):
      %v = arith.addf %p, %p : f32
      linalg.yield %v : f32
    } -> tensor<4xf32>
    %a = tensor.extract %z[%c0] : tensor<4xf32>
    %c = arith.cmpf olt, %a, %limit : f32
    scf.condition(%c) %z : tensor<4xf32>
  } do {
  ^bb0(%y: tensor<4xf32>):
    scf.yield %y : tensor<4xf32>
  }
  return %r : tensor<4xf32>
})");
  Array<float> x{1, 2, 3, 4}, y(4, NAN);
  kernels.call("loop", x, y);
  std::vector<float> expected{1, 2, 3, 4};
  do {
    std::reverse(expected.begin(), expected.end());
    for (float &value : expected)
      value *= 2;
  } while (expected[0] < 100);
  expectNear(y, expected, 0);
}

TEST(ControlFlow, ForSwapsItsValues) {
  Kernels kernels(R"(
func.func private @fibonacci(%x: tensor<3xf32>, %y: tensor<3xf32>) -> (tensor<3xf32>, tensor<3xf32>) attributes {baechi.kernel} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c7 = arith.constant 7 : index
  %r:2 = scf.for %i = %c0 to %c7 step %c1 iter_args(%a = %x, %b = %y) -> (tensor<3xf32>, tensor<3xf32>) {
    %e = tensor.empty() : tensor<3xf32>
    %s = linalg.add ins(%a, %b : tensor<3xf32>, tensor<3xf32>) outs(%e : tensor<3xf32>) -> tensor<3xf32>
    scf.yield %b, %s : tensor<3xf32>, tensor<3xf32>
  }
  return %r#0, %r#1 : tensor<3xf32>, tensor<3xf32>
}
func.func private @swap(%x: tensor<3xf32>, %y: tensor<3xf32>) -> (tensor<3xf32>, tensor<3xf32>) attributes {baechi.kernel} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c7 = arith.constant 7 : index
  %r:2 = scf.for %i = %c0 to %c7 step %c1 iter_args(%a = %x, %b = %y) -> (tensor<3xf32>, tensor<3xf32>) {
    scf.yield %b, %a : tensor<3xf32>, tensor<3xf32>
  }
  return %r#0, %r#1 : tensor<3xf32>, tensor<3xf32>
})");
  Array<float> x{0, 1, 5}, y{1, 2, -3}, a(3, NAN), b(3, NAN);
  kernels.call("swap", x, y, a, b);
  expectNear(a, {1, 2, -3}, 0);
  expectNear(b, {0, 1, 5}, 0);
  kernels.call("fibonacci", x, y, a, b);
  std::vector<float> p{0, 1, 5}, q{1, 2, -3};
  for (int i = 0; i < 7; ++i)
    for (int j = 0; j < 3; ++j) {
      float next = p[j] + q[j];
      p[j] = q[j];
      q[j] = next;
    }
  expectNear(a, p, 0);
  expectNear(b, q, 0);
}

TEST(ControlFlow, NestedLoopsCarryARowBuffer) {
  // A scan along the rows, in a loop over the rows.
  Kernels kernels(R"(
func.func private @scan(%x: tensor<5x6xf32>) -> tensor<5x6xf32> attributes {baechi.kernel} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c5 = arith.constant 5 : index
  %c6 = arith.constant 6 : index
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<5x6xf32>
  %r = scf.for %i = %c0 to %c5 step %c1 iter_args(%out = %e) -> tensor<5x6xf32> {
    %se = tensor.empty() : tensor<1xf32>
    %s0 = linalg.fill ins(%zero : f32) outs(%se : tensor<1xf32>) -> tensor<1xf32>
    %row:2 = scf.for %j = %c0 to %c6 step %c1 iter_args(%s = %s0, %o = %out) -> (tensor<1xf32>, tensor<5x6xf32>) {
      %v = tensor.extract_slice %x[%i, %j] [1, 1] [1, 1] : tensor<5x6xf32> to tensor<1xf32>
      %ne = tensor.empty() : tensor<1xf32>
      %n = linalg.add ins(%s, %v : tensor<1xf32>, tensor<1xf32>) outs(%ne : tensor<1xf32>) -> tensor<1xf32>
      %p = tensor.insert_slice %n into %o[%i, %j] [1, 1] [1, 1] : tensor<1xf32> into tensor<5x6xf32>
      scf.yield %n, %p : tensor<1xf32>, tensor<5x6xf32>
    }
    scf.yield %row#1 : tensor<5x6xf32>
  }
  return %r : tensor<5x6xf32>
})");
  auto x = Array<float>::numbers(30);
  Array<float> y(30, NAN);
  kernels.call("scan", x, y);
  std::vector<float> expected;
  for (int i = 0; i < 5; ++i) {
    float sum = 0;
    for (int j = 0; j < 6; ++j)
      expected.push_back(sum += x[i * 6 + j]);
  }
  expectNear(y, expected);
}

TEST(ControlFlow, BranchesMakeTheirOwnBuffers) {
  Kernels kernels(R"(
func.func private @choose(%c: tensor<i1>, %x: tensor<3xf32>) -> tensor<3xf32> attributes {baechi.kernel} {
  %flag = tensor.extract %c[] : tensor<i1>
  %e = tensor.empty() : tensor<3xf32>
  %r = scf.if %flag -> tensor<3xf32> {
    %s = linalg.add ins(%x, %x : tensor<3xf32>, tensor<3xf32>) outs(%e : tensor<3xf32>) -> tensor<3xf32>
    scf.yield %s : tensor<3xf32>
  } else {
    scf.yield %x : tensor<3xf32>
  }
  return %r : tensor<3xf32>
})");
  Array<float> x{1, 2, 3}, y(3, NAN);
  Array<uint8_t> yes{1}, no{0};
  kernels.call("choose", yes, x, y);
  expectNear(y, {2, 4, 6}, 0);
  kernels.call("choose", no, x, y);
  expectNear(y, {1, 2, 3}, 0);
}

// RUN: baechi-opt %s --baechi-lower-kernels | FileCheck %s

#row = affine_map<(m, n, k) -> (m, k)>
#other = affine_map<(m, n, k) -> (n, k)>
#result = affine_map<(m, n, k) -> (m, n)>

// A product in a loop is computed in register tiles.
// CHECK-LABEL: llvm.func @baechi.kernel.in_a_loop(
// CHECK: llvm.intr.fmuladd({{.*}}) : (vector<
// CHECK-NOT: llvm.fmul
func.func private @in_a_loop(%h: tensor<16x32xf32>, %w: tensor<32x32xf32>) -> tensor<16x32xf32> attributes {baechi.kernel} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c9 = arith.constant 9 : index
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<16x32xf32>
  %r = scf.for %i = %c0 to %c9 step %c1 iter_args(%carried = %h) -> tensor<16x32xf32> {
    %f = linalg.fill ins(%zero : f32) outs(%e : tensor<16x32xf32>) -> tensor<16x32xf32>
    %p = linalg.matmul ins(%carried, %w : tensor<16x32xf32>, tensor<32x32xf32>) outs(%f : tensor<16x32xf32>) -> tensor<16x32xf32>
    scf.yield %p : tensor<16x32xf32>
  }
  return %r : tensor<16x32xf32>
}

// In both branches; what a product is added to is read.
// CHECK-LABEL: llvm.func @baechi.kernel.in_branches(
// CHECK: llvm.cond_br
// CHECK: llvm.intr.fmuladd({{.*}}) : (vector<
// CHECK: llvm.intr.fmuladd({{.*}}) : (vector<
// CHECK-NOT: llvm.fmul
func.func private @in_branches(%c: tensor<i1>, %h: tensor<16x32xf32>, %w: tensor<32x32xf32>) -> tensor<16x32xf32> attributes {baechi.kernel} {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<16x32xf32>
  %taken = tensor.extract %c[] : tensor<i1>
  %r = scf.if %taken -> tensor<16x32xf32> {
    %f = linalg.fill ins(%zero : f32) outs(%e : tensor<16x32xf32>) -> tensor<16x32xf32>
    %p = linalg.matmul ins(%h, %w : tensor<16x32xf32>, tensor<32x32xf32>) outs(%f : tensor<16x32xf32>) -> tensor<16x32xf32>
    scf.yield %p : tensor<16x32xf32>
  } else {
    %p = linalg.matmul ins(%h, %w : tensor<16x32xf32>, tensor<32x32xf32>) outs(%h : tensor<16x32xf32>) -> tensor<16x32xf32>
    scf.yield %p : tensor<16x32xf32>
  }
  return %r : tensor<16x32xf32>
}

// A slice of what a loop carries is written in place, at an offset that is known
// only then.
// CHECK-LABEL: llvm.func @baechi.kernel.into_a_slice(
// CHECK: llvm.intr.fmuladd({{.*}}) : (vector<
// CHECK-NOT: llvm.fmul
func.func private @into_a_slice(%x: tensor<16x32xf32>, %w: tensor<40x32xf32>, %table: tensor<5x16x40xf32>) -> tensor<5x16x40xf32> attributes {baechi.kernel} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c5 = arith.constant 5 : index
  %zero = arith.constant 0.0 : f32
  %r = scf.for %i = %c0 to %c5 step %c1 iter_args(%t = %table) -> tensor<5x16x40xf32> {
    %s = tensor.extract_slice %t[%i, 0, 0] [1, 16, 40] [1, 1, 1] : tensor<5x16x40xf32> to tensor<16x40xf32>
    %f = linalg.fill ins(%zero : f32) outs(%s : tensor<16x40xf32>) -> tensor<16x40xf32>
    %p = linalg.generic {indexing_maps = [#row, #other, #result], iterator_types = ["parallel", "parallel", "reduction"]}
        ins(%x, %w : tensor<16x32xf32>, tensor<40x32xf32>) outs(%f : tensor<16x40xf32>) {
    ^bb0(%a: f32, %b: f32, %sum: f32):
      %0 = arith.mulf %a, %b : f32
      %1 = arith.addf %sum, %0 : f32
      linalg.yield %1 : f32
    } -> tensor<16x40xf32>
    %n = tensor.insert_slice %p into %t[%i, 0, 0] [1, 16, 40] [1, 1, 1] : tensor<16x40xf32> into tensor<5x16x40xf32>
    scf.yield %n : tensor<5x16x40xf32>
  }
  return %r : tensor<5x16x40xf32>
}

// Few rows or terms, and other types than single precision, stay loops.
// CHECK-LABEL: llvm.func @baechi.kernel.others(
// CHECK-NOT: vector<
// CHECK: llvm.fmul
// CHECK-NOT: vector<
// CHECK: llvm.return
func.func private @others(%x: tensor<4x4xf32>, %y: tensor<32x32xf64>) -> (tensor<4x4xf32>, tensor<32x32xf64>) attributes {baechi.kernel} {
  %s = linalg.matmul ins(%x, %x : tensor<4x4xf32>, tensor<4x4xf32>) outs(%x : tensor<4x4xf32>) -> tensor<4x4xf32>
  %d = linalg.matmul ins(%y, %y : tensor<32x32xf64>, tensor<32x32xf64>) outs(%y : tensor<32x32xf64>) -> tensor<32x32xf64>
  return %s, %d : tensor<4x4xf32>, tensor<32x32xf64>
}

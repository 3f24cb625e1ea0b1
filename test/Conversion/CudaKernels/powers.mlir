// Powers whose exponents are constants are products: libdevice's function has
// exponents of 32 bits, and PyTorch's x ** 2 has one of 64.
// RUN: rm -rf %t && mkdir -p %t/bin %t/nvvm/libdevice
// RUN: cp %S/Inputs/fake-tool %t/bin/ptxas && cp %S/Inputs/fake-tool %t/bin/fatbinary
// RUN: llvm-as %S/Inputs/libdevice.ll -o %t/nvvm/libdevice/libdevice.10.bc
// RUN: baechi-opt %s --baechi-lower-cuda-kernels="chips=sm_80 toolkit=%t" -o /dev/null
// RUN: FileCheck %s --input-file=%t/kernels.ptx

#id = affine_map<(d0) -> (d0)>

// CHECK-LABEL: .entry square_0(
// CHECK-COUNT-1: mul.f32
// CHECK-NOT: mul.f32
// CHECK: ret;
func.func private @square(%x: tensor<4xf32>) -> tensor<4xf32> attributes {baechi.kernel} {
  %e = tensor.empty() : tensor<4xf32>
  %two = arith.constant 2 : i64
  %r = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel"]}
      ins(%x : tensor<4xf32>) outs(%e : tensor<4xf32>) {
  ^bb0(%in: f32, %out: f32):
    %y = math.fpowi %in, %two : f32, i64
    linalg.yield %y : f32
  } -> tensor<4xf32>
  return %r : tensor<4xf32>
}

// x^-5 is 1 / (x * (x^2)^2).
// CHECK-LABEL: .entry inverse_0(
// CHECK-COUNT-3: mul.f64
// CHECK-NOT: mul.f64
// CHECK: {{rcp|div}}.rn.f64
// CHECK: ret;
func.func private @inverse(%x: tensor<4xf64>) -> tensor<4xf64> attributes {baechi.kernel} {
  %e = tensor.empty() : tensor<4xf64>
  %exponent = arith.constant -5 : i32
  %r = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel"]}
      ins(%x : tensor<4xf64>) outs(%e : tensor<4xf64>) {
  ^bb0(%in: f64, %out: f64):
    %y = math.fpowi %in, %exponent : f64, i32
    linalg.yield %y : f64
  } -> tensor<4xf64>
  return %r : tensor<4xf64>
}

// CHECK-LABEL: .entry nothing_0(
// CHECK-NOT: {{mul.f32}}
// CHECK: ret;
func.func private @nothing(%x: tensor<4xf32>) -> tensor<4xf32> attributes {baechi.kernel} {
  %e = tensor.empty() : tensor<4xf32>
  %zero = arith.constant 0 : i64
  %r = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel"]}
      ins(%x : tensor<4xf32>) outs(%e : tensor<4xf32>) {
  ^bb0(%in: f32, %out: f32):
    %y = math.fpowi %in, %zero : f32, i64
    linalg.yield %y : f32
  } -> tensor<4xf32>
  return %r : tensor<4xf32>
}

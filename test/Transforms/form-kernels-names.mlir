// A call carries the names of all that it computes, the main operation first.
// RUN: baechi-opt %s --split-input-file --baechi-form-kernels --mlir-print-debuginfo --mlir-print-local-scope | FileCheck %s

// CHECK-LABEL: func.func @step(
// CHECK: call @matmul_add_4x4x8({{.*}} loc(fused["block0/dot", "block0/add"])
// CHECK-NEXT: return
func.func @step(%a: tensor<4x8xf32>, %b: tensor<8x4xf32>, %c: tensor<4x4xf32>) -> tensor<4x4xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<4x4xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<4x4xf32>) -> tensor<4x4xf32>
  %m = linalg.matmul ins(%a, %b : tensor<4x8xf32>, tensor<8x4xf32>) outs(%f : tensor<4x4xf32>) -> tensor<4x4xf32> loc("block0/dot")
  %r = arith.addf %m, %c : tensor<4x4xf32> loc("block0/add")
  return %r : tensor<4x4xf32>
}

// -----

// A kernel does not take the name of a function of libm.
// CHECK-LABEL: func.func @scalar(
// CHECK: call @tanh_scalar(
func.func @scalar(%x: tensor<f64>) -> tensor<f64> {
  %y = math.tanh %x : tensor<f64>
  return %y : tensor<f64>
}

// RUN: baechi-opt %s --baechi-cuda-scratch | FileCheck %s

// The library's workspace is a part of the scratch, and the cost of who calls
// the kernel counts it; what host code needs stays where it is more.

// CHECK: call @workspace({{.*}}) {baechi.cost = #baechi.cost<time_ns = {cuda = 5}, scratch = 832>}
// CHECK: call @more({{.*}}) {baechi.cost = #baechi.cost<time_ns = {cuda = 5, host = 7}, scratch = 4096>}
func.func @step(%a: tensor<12x7xf32>, %b: tensor<7x9xf32>) -> tensor<12x9xf32> {
  %r = call @workspace(%a, %b) {baechi.cost = #baechi.cost<time_ns = {cuda = 5}, scratch = 0>} : (tensor<12x7xf32>, tensor<7x9xf32>) -> tensor<12x9xf32>
  %s = call @more(%r) {baechi.cost = #baechi.cost<time_ns = {cuda = 5, host = 7}, scratch = 4096>} : (tensor<12x9xf32>) -> tensor<12x9xf32>
  return %s : tensor<12x9xf32>
}

// CHECK: func.func private @workspace
// CHECK-SAME: baechi.kernel_scratch = 832
func.func private @workspace(%a: tensor<12x7xf32>, %b: tensor<7x9xf32>) -> tensor<12x9xf32> attributes {baechi.kernel, baechi.cuda_product = #baechi.cuda_product<math = "fp32", workspace = 640>} {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<12x9xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<12x9xf32>) -> tensor<12x9xf32>
  %r = linalg.matmul ins(%a, %b : tensor<12x7xf32>, tensor<7x9xf32>) outs(%f : tensor<12x9xf32>) -> tensor<12x9xf32>
  return %r : tensor<12x9xf32>
}

// CHECK: func.func private @more
// CHECK-SAME: baechi.kernel_scratch = 4096
func.func private @more(%a: tensor<12x9xf32>) -> tensor<12x9xf32> attributes {baechi.kernel, baechi.kernel_scratch = 4096 : i64} {
  %e = tensor.empty() : tensor<12x9xf32>
  %r = linalg.exp ins(%a : tensor<12x9xf32>) outs(%e : tensor<12x9xf32>) -> tensor<12x9xf32>
  return %r : tensor<12x9xf32>
}

// RUN: baechi-opt %s --baechi-cuda-scratch | FileCheck %s

// The library's workspace is a part of the scratch, and the cost of who calls
// the kernel counts it; what host code needs stays where it is more. How much of
// a GPU a kernel fills is told by blocks: of a product 32 rows and columns each,
// else of its largest launch.

// CHECK: call @workspace({{.*}}) {baechi.cost = #baechi.cost<time_ns = {cuda = 5}, scratch = 832>}
// CHECK: call @more({{.*}}) {baechi.cost = #baechi.cost<time_ns = {cuda = 5, host = 7}, scratch = 4096>}
func.func @step(%a: tensor<12x7xf32>, %b: tensor<7x9xf32>) -> tensor<12x9xf32> {
  %r = call @workspace(%a, %b) {baechi.cost = #baechi.cost<time_ns = {cuda = 5}, scratch = 0>} : (tensor<12x7xf32>, tensor<7x9xf32>) -> tensor<12x9xf32>
  %s = call @more(%r) {baechi.cost = #baechi.cost<time_ns = {cuda = 5, host = 7}, scratch = 4096>} : (tensor<12x9xf32>) -> tensor<12x9xf32>
  return %s : tensor<12x9xf32>
}

// CHECK: func.func private @workspace
// CHECK-SAME: baechi.cuda_blocks = 1 : i64
// CHECK-SAME: baechi.cuda_commands = 1 : i64
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

// CHECK: func.func private @batch
// CHECK-SAME: baechi.cuda_blocks = 18 : i64
func.func private @batch(%a: tensor<3x65x7xf32>, %b: tensor<3x7x33xf32>) -> tensor<3x65x33xf32> attributes {baechi.kernel} {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<3x65x33xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<3x65x33xf32>) -> tensor<3x65x33xf32>
  %r = linalg.batch_matmul ins(%a, %b : tensor<3x65x7xf32>, tensor<3x7x33xf32>) outs(%f : tensor<3x65x33xf32>) -> tensor<3x65x33xf32>
  return %r : tensor<3x65x33xf32>
}

// CHECK: func.func private @rows
// CHECK-SAME: baechi.cuda_blocks = 40 : i64
func.func private @rows(%a: tensor<40x256xf32>) -> tensor<40x256xf32> attributes {baechi.kernel} {
  %e = tensor.empty() : tensor<40x256xf32>
  %r = linalg.exp ins(%a : tensor<40x256xf32>) outs(%e : tensor<40x256xf32>) -> tensor<40x256xf32>
  return %r : tensor<40x256xf32>
}

// What it starts from, its parts, and the sum of these.
// CHECK: func.func private @split
// CHECK-SAME: baechi.cuda_commands = 3 : i64
func.func private @split(%x: tensor<65536xf32>, %s: tensor<f32>) -> tensor<f32> attributes {baechi.kernel} {
  %r = linalg.generic {indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> ()>], iterator_types = ["reduction"]}
      ins(%x : tensor<65536xf32>) outs(%s : tensor<f32>) {
  ^bb0(%in: f32, %out: f32):
    %a = arith.addf %out, %in : f32
    linalg.yield %a : f32
  } -> tensor<f32>
  return %r : tensor<f32>
}

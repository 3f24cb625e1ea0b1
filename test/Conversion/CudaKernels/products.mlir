// RUN: baechi-opt %s --baechi-cuda-products | FileCheck %s --check-prefixes=CHECK,FP32
// RUN: baechi-opt %s --baechi-cuda-products="math=tf32 workspace=100" | FileCheck %s --check-prefixes=CHECK,TF32
// RUN: baechi-opt %s --baechi-cuda-products=math=tf32 --baechi-lower-cuda-kernels=stage=launches | FileCheck %s --check-prefix=CODE
// RUN: not baechi-opt %s --baechi-cuda-products=math=fp8 2>&1 | FileCheck %s --check-prefix=MATH
// RUN: not baechi-opt %s --baechi-cuda-products=workspace=-1 2>&1 | FileCheck %s --check-prefix=WORKSPACE

// MATH: error: unknown math 'fp8' of GPUs; known: fp32, tf32, bf16, fp16
// WORKSPACE: error: workspace needs a number of bytes, 0 or more

// What a product is told: neither operand transposed, m, n and k, the rows'
// lengths and the batch, alignments, types, math, whether there is a bias, its
// workspace.
// CODE: constant @first__product(dense<[0, 0, 12, 9, 7, 7, 0, 9, 0, 9, 0, 1, 64, 64, 64, 0, 0, 1, 0, 1020, 0, 0, 0, 0, 0, 0, 0, 0]>
// CODE: constant @second__product(dense<[0, 0, 12, 8, 7, 14, 0, 8, 0, 8, 0, 1, 4, 64, 64, 14, 14, 0, 0, 472, 0,
// CODE: constant @measured__product(dense<[0, 0, 12, 9, 7, 7, 0, 9, 0, 9, 0, 1, 64, 64, 64, 0, 0, 1, 0, 1020, 0,
// CODE: constant @biased__product(dense<[0, 0, 12, 9, 7, 7, 0, 9, 0, 9, 0, 1, 64, 64, 64, 0, 0, 1, 1, 1020, 0,

// CHECK-LABEL: func.func private @first(
// FP32-SAME: baechi.cuda_product = #baechi.cuda_product<math = "fp32", workspace = 1020>
// TF32-SAME: baechi.cuda_product = #baechi.cuda_product<math = "tf32", workspace = 100>
func.func private @first(%a: tensor<12x7xf32>, %b: tensor<7x9xf32>) -> tensor<12x9xf32> attributes {baechi.kernel} {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<12x9xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<12x9xf32>) -> tensor<12x9xf32>
  %r = linalg.matmul ins(%a, %b : tensor<12x7xf32>, tensor<7x9xf32>) outs(%f : tensor<12x9xf32>) -> tensor<12x9xf32>
  return %r : tensor<12x9xf32>
}

// Short types are not shortened. A starts two elements into its argument.
// CHECK-LABEL: func.func private @second(
// FP32-SAME: baechi.cuda_product = #baechi.cuda_product<math = "fp32", workspace = 472>
// TF32-SAME: baechi.cuda_product = #baechi.cuda_product<math = "fp32", workspace = 100>
func.func private @second(%a: tensor<12x14xbf16>, %b: tensor<7x8xbf16>) -> tensor<12x8xbf16> attributes {baechi.kernel} {
  %zero = arith.constant 0.0 : bf16
  %part = tensor.extract_slice %a[0, 2] [12, 7] [1, 1] : tensor<12x14xbf16> to tensor<12x7xbf16>
  %e = tensor.empty() : tensor<12x8xbf16>
  %f = linalg.fill ins(%zero : bf16) outs(%e : tensor<12x8xbf16>) -> tensor<12x8xbf16>
  %r = linalg.matmul ins(%part, %b : tensor<12x7xbf16>, tensor<7x8xbf16>) outs(%f : tensor<12x8xbf16>) -> tensor<12x8xbf16>
  return %r : tensor<12x8xbf16>
}

// What another choice, or a profile, wrote is written anew.
// CHECK-LABEL: func.func private @measured(
// CHECK-NOT: algorithm
// CHECK-SAME: baechi.kernel
func.func private @measured(%a: tensor<12x7xf32>, %b: tensor<7x9xf32>) -> tensor<12x9xf32> attributes {baechi.kernel, baechi.cuda_product = #baechi.cuda_product<math = "bf16", workspace = 0, algorithm = [1, 2, 3, 4, 5, 6, 7, 8]>} {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<12x9xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<12x9xf32>) -> tensor<12x9xf32>
  %r = linalg.matmul ins(%a, %b : tensor<12x7xf32>, tensor<7x9xf32>) outs(%f : tensor<12x9xf32>) -> tensor<12x9xf32>
  return %r : tensor<12x9xf32>
}

// CHECK-LABEL: func.func private @biased(
// CHECK-SAME: baechi.cuda_product
func.func private @biased(%a: tensor<12x7xf32>, %b: tensor<7x9xf32>, %c: tensor<9xf32>) -> tensor<12x9xf32> attributes {baechi.kernel} {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<12x9xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<12x9xf32>) -> tensor<12x9xf32>
  %p = linalg.matmul ins(%a, %b : tensor<12x7xf32>, tensor<7x9xf32>) outs(%f : tensor<12x9xf32>) -> tensor<12x9xf32>
  %r = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (j)>, affine_map<(i, j) -> (i, j)>], iterator_types = ["parallel", "parallel"]}
      ins(%p, %c : tensor<12x9xf32>, tensor<9xf32>) outs(%e : tensor<12x9xf32>) {
  ^bb0(%in: f32, %bias: f32, %out: f32):
    %s = arith.addf %in, %bias : f32
    linalg.yield %s : f32
  } -> tensor<12x9xf32>
  return %r : tensor<12x9xf32>
}

// CHECK-LABEL: func.func private @no_product(
// CHECK-NOT: cuda_product
// CHECK: linalg.exp
func.func private @no_product(%a: tensor<12xf32>) -> tensor<12xf32> attributes {baechi.kernel} {
  %e = tensor.empty() : tensor<12xf32>
  %r = linalg.exp ins(%a : tensor<12xf32>) outs(%e : tensor<12xf32>) -> tensor<12xf32>
  return %r : tensor<12xf32>
}

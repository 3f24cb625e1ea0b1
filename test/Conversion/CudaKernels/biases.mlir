// RUN: baechi-opt %s --baechi-form-kernels --baechi-cuda-products=biases=true | FileCheck %s
// RUN: baechi-opt %s --baechi-form-kernels --baechi-cuda-products | FileCheck %s --check-prefix=APART

#id = affine_map<(d0, d1) -> (d0, d1)>
#col = affine_map<(d0, d1) -> (d1)>
#row = affine_map<(d0, d1) -> (d0)>
#id3 = affine_map<(d0, d1, d2) -> (d0, d1, d2)>
#last = affine_map<(d0, d1, d2) -> (d2)>

// The joined kernels, in their order; the ones that they replace are gone.
// CHECK-LABEL: func.func @step(
// CHECK-SAME: %[[X:.*]]: tensor<12x7xf32>, %[[W:.*]]: tensor<7x9xf32>, %[[B:.*]]: tensor<9xf32>, %[[C:.*]]: tensor<12xf32>
// CHECK: %[[LOGITS:.*]] = call @matmul_12x9x7_bias(%[[X]], %[[W]], %[[B]])
// The result is reshaped before the addition.
// CHECK: call @matmul_12x9x7_bias_0(%[[X]], %{{.*}}, %[[B]])
// An activation stays with the addition, and so does what is added to columns.
// CHECK: call @matmul_12x9x7(
// CHECK-NEXT: call @add_max_12x9(
// CHECK: call @matmul_12x9x7(
// CHECK-NEXT: call @add_12x9_0(
// CHECK-NOT: _bias
// CHECK: return
// CHECK-LABEL: func.func private @matmul_12x9x7_bias(
// CHECK-SAME: baechi.cuda_product = #baechi.cuda_product<math = "fp32", workspace = 1020>
// CHECK: linalg.fill
// CHECK: linalg.generic
// CHECK: arith.mulf
// CHECK: linalg.generic
// CHECK: arith.addf
// CHECK: return

// APART-NOT: _bias

func.func @step(%x: tensor<12x7xf32>, %w: tensor<7x9xf32>, %b: tensor<9xf32>, %c: tensor<12xf32>, %v: tensor<7x9xf32>, %u: tensor<7x9xf32>, %t: tensor<7x9xf32>) -> (tensor<12x9xf32>, tensor<3x4x9xf32>, tensor<12x9xf32>, tensor<12x9xf32>) {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<12x9xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<12x9xf32>) -> tensor<12x9xf32>
  %xw = linalg.matmul ins(%x, %w : tensor<12x7xf32>, tensor<7x9xf32>) outs(%f : tensor<12x9xf32>) -> tensor<12x9xf32>
  %logits = linalg.generic {indexing_maps = [#id, #col, #id], iterator_types = ["parallel", "parallel"]}
      ins(%xw, %b : tensor<12x9xf32>, tensor<9xf32>) outs(%e : tensor<12x9xf32>) {
  ^bb0(%in: f32, %bias: f32, %out: f32):
    %s = arith.addf %in, %bias : f32
    linalg.yield %s : f32
  } -> tensor<12x9xf32>

  %xv = linalg.matmul ins(%x, %v : tensor<12x7xf32>, tensor<7x9xf32>) outs(%f : tensor<12x9xf32>) -> tensor<12x9xf32>
  %xv3 = tensor.expand_shape %xv [[0, 1], [2]] output_shape [3, 4, 9] : tensor<12x9xf32> into tensor<3x4x9xf32>
  %e3 = tensor.empty() : tensor<3x4x9xf32>
  %heads = linalg.generic {indexing_maps = [#last, #id3, #id3], iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%b, %xv3 : tensor<9xf32>, tensor<3x4x9xf32>) outs(%e3 : tensor<3x4x9xf32>) {
  ^bb0(%bias: f32, %in: f32, %out: f32):
    %s = arith.addf %bias, %in : f32
    linalg.yield %s : f32
  } -> tensor<3x4x9xf32>

  %xu = linalg.matmul ins(%x, %u : tensor<12x7xf32>, tensor<7x9xf32>) outs(%f : tensor<12x9xf32>) -> tensor<12x9xf32>
  %relu = linalg.generic {indexing_maps = [#id, #col, #id], iterator_types = ["parallel", "parallel"]}
      ins(%xu, %b : tensor<12x9xf32>, tensor<9xf32>) outs(%e : tensor<12x9xf32>) {
  ^bb0(%in: f32, %bias: f32, %out: f32):
    %s = arith.addf %in, %bias : f32
    %m = arith.maximumf %s, %zero : f32
    linalg.yield %m : f32
  } -> tensor<12x9xf32>

  %xt = linalg.matmul ins(%x, %t : tensor<12x7xf32>, tensor<7x9xf32>) outs(%f : tensor<12x9xf32>) -> tensor<12x9xf32>
  %columns = linalg.generic {indexing_maps = [#id, #row, #id], iterator_types = ["parallel", "parallel"]}
      ins(%xt, %c : tensor<12x9xf32>, tensor<12xf32>) outs(%e : tensor<12x9xf32>) {
  ^bb0(%in: f32, %bias: f32, %out: f32):
    %s = arith.addf %in, %bias : f32
    linalg.yield %s : f32
  } -> tensor<12x9xf32>
  return %logits, %heads, %relu, %columns : tensor<12x9xf32>, tensor<3x4x9xf32>, tensor<12x9xf32>, tensor<12x9xf32>
}

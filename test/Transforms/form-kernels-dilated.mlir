// RUN: baechi-opt %s --baechi-form-kernels --split-input-file | FileCheck %s

// The gradients of a convolution of stride 2 with filters of 3x3 multiply no
// zeros between the elements. The filters' steps over them.
#x = affine_map<(n, f, kh, h, kw, w, c) -> (n, kh + h, kw + w, c)>
#dy = affine_map<(n, f, kh, h, kw, w, c) -> (n, h, w, f)>
#dw = affine_map<(n, f, kh, h, kw, w, c) -> (kh, kw, c, f)>

// CHECK: #[[X:.*]] = affine_map<(d0, d1, d2, d3, d4, d5, d6) -> (d0, d2 + d3 * 2, d4 + d5 * 2, d6)>
// CHECK-LABEL: func.func @step(
// CHECK-NEXT: call @[[GRADIENT:.*]](%arg0, %arg1) : (tensor<2x9x9x4xf32>, tensor<2x4x4x8xf32>) -> tensor<3x3x4x8xf32>
// CHECK-NEXT: return
// CHECK: func.func private @[[GRADIENT]](
// CHECK: linalg.generic {indexing_maps = [#[[X]],
func.func @step(%x: tensor<2x9x9x4xf32>, %dy: tensor<2x4x4x8xf32>) -> tensor<3x3x4x8xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<2x7x7x8xf32>
  %holes = linalg.fill ins(%zero : f32) outs(%e : tensor<2x7x7x8xf32>) -> tensor<2x7x7x8xf32>
  %dilated = tensor.insert_slice %dy into %holes[0, 0, 0, 0] [2, 4, 4, 8] [1, 2, 2, 1] : tensor<2x4x4x8xf32> into tensor<2x7x7x8xf32>
  %ew = tensor.empty() : tensor<3x3x4x8xf32>
  %start = linalg.fill ins(%zero : f32) outs(%ew : tensor<3x3x4x8xf32>) -> tensor<3x3x4x8xf32>
  %dw = linalg.generic {indexing_maps = [#x, #dy, #dw], iterator_types = ["reduction", "parallel", "parallel", "reduction", "parallel", "reduction", "parallel"]}
      ins(%x, %dilated : tensor<2x9x9x4xf32>, tensor<2x7x7x8xf32>) outs(%start : tensor<3x3x4x8xf32>) {
  ^bb0(%a: f32, %b: f32, %c: f32):
    %p = arith.mulf %a, %b : f32
    %q = arith.addf %c, %p : f32
    linalg.yield %q : f32
  } -> tensor<3x3x4x8xf32>
  return %dw : tensor<3x3x4x8xf32>
}

// -----

// The image's is a convolution a phase, with 2x2, 2x1, 1x2 and 1x1 of the
// filters' taps, and one operator that puts the four together.
#dy = affine_map<(f, c, h, kh, w, kw, n) -> (n, h + kh, w + kw, f)>
#w = affine_map<(f, c, h, kh, w, kw, n) -> (kh, kw, c, f)>
#dx = affine_map<(f, c, h, kh, w, kw, n) -> (n, h, w, c)>

// CHECK-LABEL: func.func @step(
// CHECK: %[[PADDED:.*]] = call @pad_{{.*}}(%arg0) : (tensor<2x8x8x32xf32>) -> tensor<2x10x10x32xf32>
// CHECK-DAG: -> tensor<2x9x9x16xf32>
// CHECK-DAG: -> tensor<2x9x8x16xf32>
// CHECK-DAG: -> tensor<2x8x9x16xf32>
// CHECK-DAG: -> tensor<2x8x8x16xf32>
// CHECK: %[[RESULT:.*]] = call {{.*}} -> tensor<2x17x17x16xf32>
// CHECK-NEXT: return %[[RESULT]]
// CHECK: func.func private {{.*}} -> tensor<2x17x17x16xf32>
// CHECK-NOT: linalg.fill
// CHECK-COUNT-4: tensor.insert_slice {{.*}} [1, 2, 2, 1]
func.func @step(%dy: tensor<2x8x8x32xf32>, %w: tensor<3x3x16x32xf32>) -> tensor<2x17x17x16xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<2x19x19x32xf32>
  %holes = linalg.fill ins(%zero : f32) outs(%e : tensor<2x19x19x32xf32>) -> tensor<2x19x19x32xf32>
  %dilated = tensor.insert_slice %dy into %holes[0, 2, 2, 0] [2, 8, 8, 32] [1, 2, 2, 1] : tensor<2x8x8x32xf32> into tensor<2x19x19x32xf32>
  %ex = tensor.empty() : tensor<2x17x17x16xf32>
  %start = linalg.fill ins(%zero : f32) outs(%ex : tensor<2x17x17x16xf32>) -> tensor<2x17x17x16xf32>
  %dx = linalg.generic {indexing_maps = [#dy, #w, #dx], iterator_types = ["reduction", "parallel", "parallel", "reduction", "parallel", "reduction", "parallel"]}
      ins(%dilated, %w : tensor<2x19x19x32xf32>, tensor<3x3x16x32xf32>) outs(%start : tensor<2x17x17x16xf32>) {
  ^bb0(%a: f32, %b: f32, %c: f32):
    %p = arith.mulf %a, %b : f32
    %q = arith.addf %c, %p : f32
    linalg.yield %q : f32
  } -> tensor<2x17x17x16xf32>
  return %dx : tensor<2x17x17x16xf32>
}

// -----

// A small one stays one operator: its phases would cost more calls than they
// save products.
#dy = affine_map<(f, c, h, kh, w, kw, n) -> (n, h + kh, w + kw, f)>
#w = affine_map<(f, c, h, kh, w, kw, n) -> (kh, kw, c, f)>
#dx = affine_map<(f, c, h, kh, w, kw, n) -> (n, h, w, c)>

// CHECK-LABEL: func.func @step(
// CHECK: call @insert_slice_{{.*}} -> tensor<1x7x7x3xf32>
// CHECK-NEXT: call @conv_{{.*}} -> tensor<5x5x2xf32>
// CHECK-NOT: call
func.func @step(%dy: tensor<1x2x2x3xf32>, %w: tensor<3x3x2x3xf32>) -> tensor<1x5x5x2xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<1x7x7x3xf32>
  %holes = linalg.fill ins(%zero : f32) outs(%e : tensor<1x7x7x3xf32>) -> tensor<1x7x7x3xf32>
  %dilated = tensor.insert_slice %dy into %holes[0, 2, 2, 0] [1, 2, 2, 3] [1, 2, 2, 1] : tensor<1x2x2x3xf32> into tensor<1x7x7x3xf32>
  %ex = tensor.empty() : tensor<1x5x5x2xf32>
  %start = linalg.fill ins(%zero : f32) outs(%ex : tensor<1x5x5x2xf32>) -> tensor<1x5x5x2xf32>
  %dx = linalg.generic {indexing_maps = [#dy, #w, #dx], iterator_types = ["reduction", "parallel", "parallel", "reduction", "parallel", "reduction", "parallel"]}
      ins(%dilated, %w : tensor<1x7x7x3xf32>, tensor<3x3x2x3xf32>) outs(%start : tensor<1x5x5x2xf32>) {
  ^bb0(%a: f32, %b: f32, %c: f32):
    %p = arith.mulf %a, %b : f32
    %q = arith.addf %c, %p : f32
    linalg.yield %q : f32
  } -> tensor<1x5x5x2xf32>
  return %dx : tensor<1x5x5x2xf32>
}

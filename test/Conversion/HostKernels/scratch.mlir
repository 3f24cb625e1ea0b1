// RUN: baechi-opt %s --baechi-kernel-scratch | FileCheck %s

#map = affine_map<(d0, d1) -> (d0, d1)>
#t = affine_map<(d0, d1) -> (d1, d0)>

// Two buffers of 100 x 101 floats, each rounded up to 64 bytes; the kernel stays
// on tensors.
// CHECK-LABEL: func.func private @two_buffers
// CHECK-SAME: baechi.kernel_scratch = 80896 : i64
// CHECK: linalg.generic
func.func private @two_buffers(%x: tensor<101x100xf32>) -> tensor<101x100xf32> attributes {baechi.kernel} {
  %e = tensor.empty() : tensor<100x101xf32>
  %y = linalg.generic {indexing_maps = [#t, #map], iterator_types = ["parallel", "parallel"]}
      ins(%x : tensor<101x100xf32>) outs(%e : tensor<100x101xf32>) {
  ^bb0(%in: f32, %o: f32):
    %0 = arith.addf %in, %in : f32
    linalg.yield %0 : f32
  } -> tensor<100x101xf32>
  %z = linalg.exp ins(%y : tensor<100x101xf32>) outs(%e : tensor<100x101xf32>) -> tensor<100x101xf32>
  %re = tensor.empty() : tensor<101x100xf32>
  %r = linalg.generic {indexing_maps = [#t, #t, #map], iterator_types = ["parallel", "parallel"]}
      ins(%y, %z : tensor<100x101xf32>, tensor<100x101xf32>) outs(%re : tensor<101x100xf32>) {
  ^bb0(%a: f32, %b: f32, %o: f32):
    %0 = arith.mulf %a, %b : f32
    linalg.yield %0 : f32
  } -> tensor<101x100xf32>
  return %r : tensor<101x100xf32>
}

// The first result says only how far the reduction runs: no buffer.
// CHECK-LABEL: func.func private @dead_result
// CHECK-SAME: baechi.kernel_scratch = 0 : i64
func.func private @dead_result(%x: tensor<100xf32>) -> tensor<100xf32> attributes {baechi.kernel} {
  %zero = arith.constant 0.0 : f32
  %dead = tensor.empty() : tensor<100x1000xf32>
  %e = tensor.empty() : tensor<100xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<100xf32>) -> tensor<100xf32>
  %r:2 = linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d0)>, #map, affine_map<(d0, d1) -> (d0)>], iterator_types = ["parallel", "reduction"]}
      ins(%x : tensor<100xf32>) outs(%dead, %f : tensor<100x1000xf32>, tensor<100xf32>) {
  ^bb0(%in: f32, %o: f32, %s: f32):
    %0 = arith.addf %s, %in : f32
    linalg.yield %in, %0 : f32, f32
  } -> (tensor<100x1000xf32>, tensor<100xf32>)
  return %r#1 : tensor<100xf32>
}

// CHECK-LABEL: func.func private @not_a_kernel
// CHECK-NOT: kernel_scratch
func.func private @not_a_kernel(%x: tensor<?xf32>) -> tensor<?xf32> {
  return %x : tensor<?xf32>
}

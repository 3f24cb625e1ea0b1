// RUN: baechi-opt %s --baechi-cuda-products | FileCheck %s --check-prefixes=CHECK,MEASURED
// RUN: baechi-opt %s --baechi-cuda-products="convolutions=cudnn math=tf32 workspace=100" | FileCheck %s --check-prefixes=CHECK,ALWAYS
// RUN: baechi-opt %s --baechi-cuda-products=convolutions=generated | FileCheck %s --check-prefix=GENERATED
// RUN: baechi-opt %s --baechi-cuda-products=convolutions=cudnn --baechi-lower-cuda-kernels=stage=launches | FileCheck %s --check-prefix=CODE
// RUN: baechi-opt %s --baechi-cuda-products --baechi-lower-cuda-kernels=stage=launches | FileCheck %s --check-prefix=TILES
// RUN: baechi-opt %s --baechi-cuda-products=convolutions=cudnn --baechi-cuda-scratch | FileCheck %s --check-prefix=SCRATCH
// RUN: not baechi-opt %s --baechi-cuda-products=convolutions=fast 2>&1 | FileCheck %s --check-prefix=UNKNOWN

// UNKNOWN: error: unknown way 'fast' of convolutions; known: measured, generated, cudnn
// GENERATED-NOT: cuda_convolution
// TILES-NOT: baechi_cuda_convolve

// What a convolution is told: whether filters are computed, dimensions of space,
// then sizes, strides and alignment of images, filters and results, steps,
// dilations, type, math, workspace, and no engine.
// CODE: constant @forward__convolution(dense<[0, 2, 2, 3, 11, 9, 0, 297, 1, 27, 3, 0, 64, 8, 3, 3, 2, 0, 18, 1, 6, 3, 0, 64, 2, 8, 5, 8, 0, 320, 1, 64, 8, 0, 64, 2, 1, 0, 1, 1, 0, 0, 0, 65536, 0, 0,
// CODE-LABEL: func.func private @forward(
// The filters are moved, to where channels are innermost, before that.
// CODE: gpu.launch
// CODE: llvm.call @baechi_cuda_convolve
// CODE-NOT: gpu.launch
// CODE: return

// MEASURED: func.func private @forward({{.*}}baechi.cuda_convolution = #baechi.cuda_convolution<math = "fp32", workspace = 65536>
// ALWAYS: func.func private @forward({{.*}}baechi.cuda_convolution = #baechi.cuda_convolution<math = "tf32", workspace = 100, always = true>
// SCRATCH: func.func private @forward({{.*}}baechi.kernel_scratch = 66304 : i64
func.func private @forward(%x: tensor<2x11x9x3xf32>, %w: tensor<3x2x3x8xf32>) -> tensor<2x5x8x8xf32> attributes {baechi.kernel} {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<2x5x8x8xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<2x5x8x8xf32>) -> tensor<2x5x8x8xf32>
  %r = linalg.generic {indexing_maps = [affine_map<(n, p, q, k, r, s, c) -> (n, p * 2 + r, q + s, c)>, affine_map<(n, p, q, k, r, s, c) -> (r, s, c, k)>, affine_map<(n, p, q, k, r, s, c) -> (n, p, q, k)>], iterator_types = ["parallel", "parallel", "parallel", "parallel", "reduction", "reduction", "reduction"]}
      ins(%x, %w : tensor<2x11x9x3xf32>, tensor<3x2x3x8xf32>) outs(%f : tensor<2x5x8x8xf32>) {
  ^bb0(%a: f32, %b: f32, %o: f32):
    %p = arith.mulf %a, %b : f32
    %s = arith.addf %o, %p : f32
    linalg.yield %s : f32
  } -> tensor<2x5x8x8xf32>
  return %r : tensor<2x5x8x8xf32>
}

// Of its filters: what is summed are the places. They are moved after that.
// CODE: constant @filters__convolution(dense<[1, 2, 2, 3, 11, 9, 0, 297, 1, 27, 3, 0, 64, 8, 3, 3, 2, 0, 18, 1, 6, 3, 0, 64, 2, 8, 5, 8, 0, 320, 1, 64, 8, 0, 64, 2, 1, 0, 1, 1, 0, 0, 0, 65536, 0, 0,
// CODE-LABEL: func.func private @filters(
// CODE-NOT: gpu.launch
// CODE: llvm.call @baechi_cuda_convolve
// CODE: gpu.launch
// CODE: return
// CHECK: func.func private @filters({{.*}}baechi.cuda_convolution
func.func private @filters(%x: tensor<2x11x9x3xf32>, %y: tensor<2x5x8x8xf32>) -> tensor<3x2x3x8xf32> attributes {baechi.kernel} {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<3x2x3x8xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<3x2x3x8xf32>) -> tensor<3x2x3x8xf32>
  %r = linalg.generic {indexing_maps = [affine_map<(n, r, p, s, q, c, k) -> (n, r + p * 2, s + q, c)>, affine_map<(n, r, p, s, q, c, k) -> (n, p, q, k)>, affine_map<(n, r, p, s, q, c, k) -> (r, s, c, k)>], iterator_types = ["reduction", "parallel", "reduction", "parallel", "reduction", "parallel", "parallel"]}
      ins(%x, %y : tensor<2x11x9x3xf32>, tensor<2x5x8x8xf32>) outs(%f : tensor<3x2x3x8xf32>) {
  ^bb0(%a: f32, %b: f32, %o: f32):
    %p = arith.mulf %a, %b : f32
    %s = arith.addf %o, %p : f32
    linalg.yield %s : f32
  } -> tensor<3x2x3x8xf32>
  return %r : tensor<3x2x3x8xf32>
}

// Groups of channels, a window of one dimension, a dilation, and images whose
// channels lie outside the space: filters that lie as the library takes them.
// CODE: constant @groups__convolution(dense<[0, 2, 2, 6, 1, 20, 0, 120, 20, 20, 1, 0, 64, 4, 3, 1, 3, 0, 9, 3, 3, 1, 0, 64, 2, 4, 1, 14, 0, 56, 14, 14, 1, 0, 64, 1, 1, 0, 1, 3, 0, 14, 0, 65536, 0, 0,
// CODE-LABEL: func.func private @groups(
// CODE-NOT: gpu.launch
// CODE: return
// CHECK: func.func private @groups({{.*}}#baechi.cuda_convolution<math = "fp32"
func.func private @groups(%x: tensor<2x2x3x20xbf16>, %w: tensor<2x2x3x3xbf16>) -> tensor<2x2x2x14xbf16> attributes {baechi.kernel} {
  %zero = arith.constant 0.0 : bf16
  %e = tensor.empty() : tensor<2x2x2x14xbf16>
  %f = linalg.fill ins(%zero : bf16) outs(%e : tensor<2x2x2x14xbf16>) -> tensor<2x2x2x14xbf16>
  %r = linalg.generic {indexing_maps = [affine_map<(n, g, k, q, c, s) -> (n, g, c, q + s * 3)>, affine_map<(n, g, k, q, c, s) -> (g, k, c, s)>, affine_map<(n, g, k, q, c, s) -> (n, g, k, q)>], iterator_types = ["parallel", "parallel", "parallel", "parallel", "reduction", "reduction"]}
      ins(%x, %w : tensor<2x2x3x20xbf16>, tensor<2x2x3x3xbf16>) outs(%f : tensor<2x2x2x14xbf16>) {
  ^bb0(%a: bf16, %b: bf16, %o: bf16):
    %p = arith.mulf %a, %b : bf16
    %s = arith.addf %o, %p : bf16
    linalg.yield %s : bf16
  } -> tensor<2x2x2x14xbf16>
  return %r : tensor<2x2x2x14xbf16>
}

// A part of images whose rows are longer: gaps that the library would not see.
// CHECK: func.func private @slice(
// CHECK-NOT: cuda_convolution
// CHECK: return
func.func private @slice(%x: tensor<2x11x9x3xf32>, %w: tensor<3x2x3x8xf32>) -> tensor<2x5x7x8xf32> attributes {baechi.kernel} {
  %zero = arith.constant 0.0 : f32
  %part = tensor.extract_slice %x[0, 0, 1, 0] [2, 11, 8, 3] [1, 1, 1, 1] : tensor<2x11x9x3xf32> to tensor<2x11x8x3xf32>
  %e = tensor.empty() : tensor<2x5x7x8xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<2x5x7x8xf32>) -> tensor<2x5x7x8xf32>
  %r = linalg.generic {indexing_maps = [affine_map<(n, p, q, k, r, s, c) -> (n, p * 2 + r, q + s, c)>, affine_map<(n, p, q, k, r, s, c) -> (r, s, c, k)>, affine_map<(n, p, q, k, r, s, c) -> (n, p, q, k)>], iterator_types = ["parallel", "parallel", "parallel", "parallel", "reduction", "reduction", "reduction"]}
      ins(%part, %w : tensor<2x11x8x3xf32>, tensor<3x2x3x8xf32>) outs(%f : tensor<2x5x7x8xf32>) {
  ^bb0(%a: f32, %b: f32, %o: f32):
    %p = arith.mulf %a, %b : f32
    %s = arith.addf %o, %p : f32
    linalg.yield %s : f32
  } -> tensor<2x5x7x8xf32>
  return %r : tensor<2x5x7x8xf32>
}

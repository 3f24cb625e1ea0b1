// Long sums run in blocks, which are added up in double precision.
// RUN: baechi-opt %s --baechi-lower-cuda-kernels=stage=launches | FileCheck %s

#all = affine_map<(i, j) -> (i, j)>
#row = affine_map<(i, j) -> (i)>
#one = affine_map<(i, j) -> ()>

// A thread adds up no more than a block; what blocks of threads give is added
// up in double precision.
// CHECK-LABEL: func.func private @all(
// CHECK: gpu.launch
// CHECK-NOT: f64
// CHECK: gpu.launch
// CHECK: arith.addf {{.*}} : f64
// CHECK: arith.truncf {{.*}} : f64 to f32
func.func private @all(%x: tensor<4096x1024xf32>, %s: tensor<f32>) -> tensor<f32> attributes {baechi.kernel} {
  %r = linalg.generic {indexing_maps = [#all, #one], iterator_types = ["reduction", "reduction"]}
      ins(%x : tensor<4096x1024xf32>) outs(%s : tensor<f32>) {
  ^bb0(%in: f32, %out: f32):
    %a = arith.addf %out, %in : f32
    linalg.yield %a : f32
  } -> tensor<f32>
  return %r : tensor<f32>
}

// Two terms at a time are one thread's.
// CHECK-LABEL: func.func private @in_turn(
// CHECK: scf.for {{.*}} -> (f64)
// CHECK: scf.for {{.*}} -> (f32)
// CHECK: arith.addf {{.*}} : f64
func.func private @in_turn(%x: tensor<2x65536xf32>, %s: tensor<2xf32>) -> tensor<2xf32> attributes {baechi.kernel} {
  %r = linalg.generic {indexing_maps = [#all, #row], iterator_types = ["parallel", "reduction"]}
      ins(%x : tensor<2x65536xf32>) outs(%s : tensor<2xf32>) {
  ^bb0(%in: f32, %out: f32):
    %a = arith.addf %out, %in : f32
    %b = arith.addf %in, %a : f32
    linalg.yield %b : f32
  } -> tensor<2xf32>
  return %r : tensor<2xf32>
}

// Short sums and largest elements stay.
// CHECK-LABEL: func.func private @short(
// CHECK-NOT: f64
// CHECK: return
func.func private @short(%x: tensor<64x8192xf32>, %s: tensor<64xf32>) -> tensor<64xf32> attributes {baechi.kernel} {
  %r = linalg.generic {indexing_maps = [#all, #row], iterator_types = ["parallel", "reduction"]}
      ins(%x : tensor<64x8192xf32>) outs(%s : tensor<64xf32>) {
  ^bb0(%in: f32, %out: f32):
    %a = arith.addf %out, %in : f32
    linalg.yield %a : f32
  } -> tensor<64xf32>
  return %r : tensor<64xf32>
}
// CHECK-LABEL: func.func private @largest(
// CHECK-NOT: f64
// CHECK: return
func.func private @largest(%x: tensor<64x65536xf32>, %s: tensor<64xf32>) -> tensor<64xf32> attributes {baechi.kernel} {
  %r = linalg.generic {indexing_maps = [#all, #row], iterator_types = ["parallel", "reduction"]}
      ins(%x : tensor<64x65536xf32>) outs(%s : tensor<64xf32>) {
  ^bb0(%in: f32, %out: f32):
    %a = arith.maximumf %out, %in : f32
    linalg.yield %a : f32
  } -> tensor<64xf32>
  return %r : tensor<64xf32>
}

// Long sums run in blocks, which are added up in double precision.
// RUN: baechi-opt %s --baechi-lower-kernels | FileCheck %s

#all = affine_map<(d0, d1) -> (d0, d1)>
#one = affine_map<(d0, d1) -> ()>
#row = affine_map<(d0, d1) -> (d0)>
#column = affine_map<(d0, d1) -> (d1)>

// 4 rows of 1024 elements are a block, one row is left: two inner loops.
// CHECK-LABEL: llvm.func @baechi.kernel.sum_of_all(
// CHECK: llvm.fadd {{.*}} : vector<8xf32>
// CHECK: llvm.fpext {{.*}} : f32 to f64
// CHECK: llvm.fadd {{.*}} : f64
// CHECK: llvm.fadd {{.*}} : vector<8xf32>
// CHECK: llvm.fadd {{.*}} : f64
// CHECK: llvm.fptrunc {{.*}} : f64 to f32
func.func private @sum_of_all(%x: tensor<4097x1024xf32>, %s: tensor<f32>) -> tensor<f32> attributes {baechi.kernel} {
  %r = linalg.generic {indexing_maps = [#all, #one], iterator_types = ["reduction", "reduction"]}
      ins(%x : tensor<4097x1024xf32>) outs(%s : tensor<f32>) {
  ^bb0(%in: f32, %out: f32):
    %a = arith.addf %out, %in : f32
    linalg.yield %a : f32
  } -> tensor<f32>
  return %r : tensor<f32>
}

// Blocks of 512 rows, whose columns are added side by side; positions are those
// of the whole.
// CHECK-LABEL: llvm.func @baechi.kernel.sum_of_columns(
// CHECK: llvm.mlir.constant(512 : index)
// CHECK: llvm.fadd {{.*}} : f64
func.func private @sum_of_columns(%x: tensor<65536x8xf32>, %s: tensor<8xf32>) -> tensor<8xf32> attributes {baechi.kernel} {
  %r = linalg.generic {indexing_maps = [#all, #column], iterator_types = ["reduction", "parallel"]}
      ins(%x : tensor<65536x8xf32>) outs(%s : tensor<8xf32>) {
  ^bb0(%in: f32, %out: f32):
    %i = linalg.index 0 : index
    %j = arith.index_cast %i : index to i32
    %k = arith.sitofp %j : i32 to f32
    %m = arith.addf %in, %k : f32
    %a = arith.addf %out, %m : f32
    linalg.yield %a : f32
  } -> tensor<8xf32>
  return %r : tensor<8xf32>
}

// Short sums, largest elements and what is more than a sum stay.
// CHECK-LABEL: llvm.func @baechi.kernel.short_sums(
// CHECK-NOT: f64
// CHECK: llvm.return
func.func private @short_sums(%x: tensor<64x8192xf32>, %s: tensor<64xf32>) -> tensor<64xf32> attributes {baechi.kernel} {
  %r = linalg.generic {indexing_maps = [#all, #row], iterator_types = ["parallel", "reduction"]}
      ins(%x : tensor<64x8192xf32>) outs(%s : tensor<64xf32>) {
  ^bb0(%in: f32, %out: f32):
    %a = arith.addf %out, %in : f32
    linalg.yield %a : f32
  } -> tensor<64xf32>
  return %r : tensor<64xf32>
}
// CHECK-LABEL: llvm.func @baechi.kernel.largest(
// CHECK-NOT: f64
// CHECK: llvm.return
func.func private @largest(%x: tensor<64x9000xf32>, %s: tensor<64xf32>) -> tensor<64xf32> attributes {baechi.kernel} {
  %r = linalg.generic {indexing_maps = [#all, #row], iterator_types = ["parallel", "reduction"]}
      ins(%x : tensor<64x9000xf32>) outs(%s : tensor<64xf32>) {
  ^bb0(%in: f32, %out: f32):
    %a = arith.maximumf %out, %in : f32
    linalg.yield %a : f32
  } -> tensor<64xf32>
  return %r : tensor<64xf32>
}
// CHECK-LABEL: llvm.func @baechi.kernel.halved(
// CHECK-NOT: f64
// CHECK: llvm.return
func.func private @halved(%x: tensor<64x9000xf32>, %s: tensor<64xf32>) -> tensor<64xf32> attributes {baechi.kernel} {
  %half = arith.constant 5.0e-01 : f32
  %r = linalg.generic {indexing_maps = [#all, #row], iterator_types = ["parallel", "reduction"]}
      ins(%x : tensor<64x9000xf32>) outs(%s : tensor<64xf32>) {
  ^bb0(%in: f32, %out: f32):
    %h = arith.mulf %out, %half : f32
    %a = arith.addf %h, %in : f32
    linalg.yield %a : f32
  } -> tensor<64xf32>
  return %r : tensor<64xf32>
}

// RUN: baechi-opt %s --baechi-lower-kernels | mlir-translate --mlir-to-llvmir \
// RUN:   | FileCheck %s
// RUN: baechi-opt %s --baechi-kernel-scratch | FileCheck %s --check-prefix=SCRATCH

// A product by generated code: sums stay in registers, nothing is called. Nine
// columns are no whole number of vectors on any processor.
// SCRATCH: @product{{.*}}baechi.kernel_scratch = 0
// CHECK-LABEL: define void @baechi.kernel.product(
// CHECK-NOT: call void @cblas_sgemm
// CHECK: phi <[[LANES:[0-9]+]] x float>
// CHECK: call <[[LANES]] x float> @llvm.masked.load
// CHECK: call <[[LANES]] x float> @llvm.fmuladd
// CHECK: call void @llvm.masked.store
func.func private @product(%a: tensor<12x7xf32>, %b: tensor<7x9xf32>) -> tensor<12x9xf32> attributes {baechi.kernel} {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<12x9xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<12x9xf32>) -> tensor<12x9xf32>
  %r = linalg.matmul ins(%a, %b : tensor<12x7xf32>, tensor<7x9xf32>) outs(%f : tensor<12x9xf32>) -> tensor<12x9xf32>
  return %r : tensor<12x9xf32>
}

// Columns that do not lie together are packed first, by transposing squares.
// SCRATCH: @transposed{{.*}}baechi.kernel_scratch = {{[1-9]}}
// CHECK-LABEL: define void @baechi.kernel.transposed(
// CHECK: shufflevector
// CHECK: call <{{[0-9]+}} x float> @llvm.fmuladd
func.func private @transposed(%a: tensor<12x40xf32>, %b: tensor<16x40xf32>) -> tensor<12x16xf32> attributes {baechi.kernel} {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<12x16xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<12x16xf32>) -> tensor<12x16xf32>
  %r = linalg.generic {indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (n, k)>, affine_map<(m, n, k) -> (m, n)>], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%a, %b : tensor<12x40xf32>, tensor<16x40xf32>) outs(%f : tensor<12x16xf32>) {
  ^bb0(%x: f32, %y: f32, %s: f32):
    %p = arith.mulf %x, %y : f32
    %q = arith.addf %s, %p : f32
    linalg.yield %q : f32
  } -> tensor<12x16xf32>
  return %r : tensor<12x16xf32>
}

// No panel is asked for ahead where its rows would share a place in the cache.
// CHECK-LABEL: define void @baechi.kernel.far_apart(
// CHECK-NOT: @llvm.prefetch
// CHECK: ret void
func.func private @far_apart(%a: tensor<12x64xf32>, %b: tensor<64x1048576xf32>) -> tensor<12x1048576xf32> attributes {baechi.kernel} {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<12x1048576xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<12x1048576xf32>) -> tensor<12x1048576xf32>
  %r = linalg.matmul ins(%a, %b : tensor<12x64xf32>, tensor<64x1048576xf32>) outs(%f : tensor<12x1048576xf32>) -> tensor<12x1048576xf32>
  return %r : tensor<12x1048576xf32>
}

// RUN: baechi-opt %s --baechi-lower-kernels | mlir-translate --mlir-to-llvmir \
// RUN:   | opt -S -passes=instcombine | FileCheck %s

// cblas_sgemm(order, transpose A, transpose B, M, N, K, alpha, A, lda, B, ldb,
// beta, C, ldc) with the enumerators of cblas.h: row-major 101, not transposed
// 111, transposed 112.

// Chosen by name: no call.
// CHECK-LABEL: define void @baechi.kernel.generated(
// CHECK-NOT: cblas_sgemm
// CHECK: ret void
func.func private @generated(%a: tensor<12x7xf32>, %b: tensor<7x9xf32>) -> tensor<12x9xf32> attributes {baechi.kernel, baechi.implementation = "generated"} {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<12x9xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<12x9xf32>) -> tensor<12x9xf32>
  %r = linalg.generic {indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (k, n)>, affine_map<(m, n, k) -> (m, n)>], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%a, %b : tensor<12x7xf32>, tensor<7x9xf32>) outs(%f : tensor<12x9xf32>) {
  ^bb0(%x: f32, %y: f32, %s: f32):
    %p = arith.mulf %x, %y : f32
    %q = arith.addf %s, %p : f32
    linalg.yield %q : f32
  } -> tensor<12x9xf32>
  return %r : tensor<12x9xf32>
}

// CHECK-LABEL: define void @baechi.kernel.nn(
// CHECK-NOT: br
// CHECK: call void @cblas_sgemm(i32 101, i32 111, i32 111, i32 12, i32 9, i32 7, float 1.000000e+00, ptr %0, i32 7, ptr %1, i32 9, float 0.000000e+00, ptr %2, i32 9)
func.func private @nn(%a: tensor<12x7xf32>, %b: tensor<7x9xf32>) -> tensor<12x9xf32> attributes {baechi.kernel, baechi.implementation = "openblas"} {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<12x9xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<12x9xf32>) -> tensor<12x9xf32>
  %r = linalg.generic {indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (k, n)>, affine_map<(m, n, k) -> (m, n)>], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%a, %b : tensor<12x7xf32>, tensor<7x9xf32>) outs(%f : tensor<12x9xf32>) {
  ^bb0(%x: f32, %y: f32, %s: f32):
    %p = arith.mulf %x, %y : f32
    %q = arith.addf %s, %p : f32
    linalg.yield %q : f32
  } -> tensor<12x9xf32>
  return %r : tensor<12x9xf32>
}

// CHECK-LABEL: define void @baechi.kernel.nt(
// CHECK-NOT: br
// CHECK: call void @cblas_sgemm(i32 101, i32 111, i32 112, i32 12, i32 9, i32 7, float 1.000000e+00, ptr %0, i32 7, ptr %1, i32 7, float 0.000000e+00, ptr %2, i32 9)
func.func private @nt(%a: tensor<12x7xf32>, %b: tensor<9x7xf32>) -> tensor<12x9xf32> attributes {baechi.kernel, baechi.implementation = "openblas"} {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<12x9xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<12x9xf32>) -> tensor<12x9xf32>
  %r = linalg.generic {indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (n, k)>, affine_map<(m, n, k) -> (m, n)>], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%a, %b : tensor<12x7xf32>, tensor<9x7xf32>) outs(%f : tensor<12x9xf32>) {
  ^bb0(%x: f32, %y: f32, %s: f32):
    %p = arith.mulf %x, %y : f32
    %q = arith.addf %s, %p : f32
    linalg.yield %q : f32
  } -> tensor<12x9xf32>
  return %r : tensor<12x9xf32>
}

// CHECK-LABEL: define void @baechi.kernel.tn(
// CHECK-NOT: br
// CHECK: call void @cblas_sgemm(i32 101, i32 112, i32 111, i32 12, i32 9, i32 7, float 1.000000e+00, ptr %0, i32 12, ptr %1, i32 9, float 0.000000e+00, ptr %2, i32 9)
func.func private @tn(%a: tensor<7x12xf32>, %b: tensor<7x9xf32>) -> tensor<12x9xf32> attributes {baechi.kernel, baechi.implementation = "openblas"} {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<12x9xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<12x9xf32>) -> tensor<12x9xf32>
  %r = linalg.generic {indexing_maps = [affine_map<(m, n, k) -> (k, m)>, affine_map<(m, n, k) -> (k, n)>, affine_map<(m, n, k) -> (m, n)>], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%a, %b : tensor<7x12xf32>, tensor<7x9xf32>) outs(%f : tensor<12x9xf32>) {
  ^bb0(%x: f32, %y: f32, %s: f32):
    %p = arith.mulf %x, %y : f32
    %q = arith.addf %s, %p : f32
    linalg.yield %q : f32
  } -> tensor<12x9xf32>
  return %r : tensor<12x9xf32>
}

// The transposed result is the product of the transposed operands.
// CHECK-LABEL: define void @baechi.kernel.transposed_result(
// CHECK: call void @cblas_sgemm(i32 101, i32 112, i32 112, i32 9, i32 12, i32 7, float 1.000000e+00, ptr %1, i32 9, ptr %0, i32 7, float 0.000000e+00, ptr %2, i32 12)
func.func private @transposed_result(%a: tensor<12x7xf32>, %b: tensor<7x9xf32>) -> tensor<9x12xf32> attributes {baechi.kernel, baechi.implementation = "openblas"} {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<9x12xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<9x12xf32>) -> tensor<9x12xf32>
  %r = linalg.generic {indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (k, n)>, affine_map<(m, n, k) -> (n, m)>], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%a, %b : tensor<12x7xf32>, tensor<7x9xf32>) outs(%f : tensor<9x12xf32>) {
  ^bb0(%x: f32, %y: f32, %s: f32):
    %p = arith.mulf %x, %y : f32
    %q = arith.addf %s, %p : f32
    linalg.yield %q : f32
  } -> tensor<9x12xf32>
  return %r : tensor<9x12xf32>
}

// One product for each of 3 x 2 matrices, heads interleaved in the operands.
// CHECK-LABEL: define void @baechi.kernel.heads(
// CHECK: icmp slt i64 %[[BATCH:.*]], 3
// CHECK: %[[AB:.*]] = mul i64 %[[BATCH]], 672
// CHECK: %[[ABATCH:.*]] = getelementptr i8, ptr %0, i64 %[[AB]]
// CHECK: %[[BB:.*]] = mul i64 %[[BATCH]], 504
// CHECK: %[[BBATCH:.*]] = getelementptr i8, ptr %1, i64 %[[BB]]
// CHECK: %[[CB:.*]] = mul i64 %[[BATCH]], 864
// CHECK: %[[CBATCH:.*]] = getelementptr i8, ptr %2, i64 %[[CB]]
// CHECK: icmp slt i64 %[[HEAD:.*]], 2
// CHECK: %[[AH:.*]] = mul i64 %[[HEAD]], 28
// CHECK: %[[A:.*]] = getelementptr i8, ptr %[[ABATCH]], i64 %[[AH]]
// CHECK: %[[BH:.*]] = mul i64 %[[HEAD]], 28
// CHECK: %[[B:.*]] = getelementptr i8, ptr %[[BBATCH]], i64 %[[BH]]
// CHECK: %[[CH:.*]] = mul i64 %[[HEAD]], 432
// CHECK: %[[C:.*]] = getelementptr i8, ptr %[[CBATCH]], i64 %[[CH]]
// CHECK: call void @cblas_sgemm(i32 101, i32 111, i32 112, i32 12, i32 9, i32 7, float 1.000000e+00, ptr %[[A]], i32 14, ptr %[[B]], i32 14, float 0.000000e+00, ptr %[[C]], i32 9)
func.func private @heads(%a: tensor<3x12x2x7xf32>, %b: tensor<3x9x2x7xf32>) -> tensor<3x2x12x9xf32> attributes {baechi.kernel, baechi.implementation = "openblas"} {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<3x2x12x9xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<3x2x12x9xf32>) -> tensor<3x2x12x9xf32>
  %r = linalg.generic {indexing_maps = [affine_map<(b, h, m, n, k) -> (b, m, h, k)>, affine_map<(b, h, m, n, k) -> (b, n, h, k)>, affine_map<(b, h, m, n, k) -> (b, h, m, n)>], iterator_types = ["parallel", "parallel", "parallel", "parallel", "reduction"]}
      ins(%a, %b : tensor<3x12x2x7xf32>, tensor<3x9x2x7xf32>) outs(%f : tensor<3x2x12x9xf32>) {
  ^bb0(%x: f32, %y: f32, %s: f32):
    %p = arith.mulf %x, %y : f32
    %q = arith.addf %s, %p : f32
    linalg.yield %q : f32
  } -> tensor<3x2x12x9xf32>
  return %r : tensor<3x2x12x9xf32>
}

// Slices and reshapes are offsets and leading dimensions.
// CHECK-LABEL: define void @baechi.kernel.views(
// CHECK: %[[A:.*]] = getelementptr i8, ptr %0, i64 40
// CHECK: %[[B:.*]] = getelementptr i8, ptr %1, i64 60
// CHECK: call void @cblas_sgemm(i32 101, i32 111, i32 111, i32 4, i32 15, i32 4, float 1.000000e+00, ptr %[[A]], i32 8, ptr %[[B]], i32 30, float 0.000000e+00, ptr %2, i32 15)
func.func private @views(%a: tensor<6x8xf32>, %b: tensor<4x2x3x5xf32>) -> tensor<4x15xf32> attributes {baechi.kernel, baechi.implementation = "openblas"} {
  %zero = arith.constant 0.0 : f32
  %rows = tensor.extract_slice %a[1, 2] [4, 4] [1, 1] : tensor<6x8xf32> to tensor<4x4xf32>
  %block = tensor.extract_slice %b[0, 1, 0, 0] [4, 1, 3, 5] [1, 1, 1, 1] : tensor<4x2x3x5xf32> to tensor<4x3x5xf32>
  %flat = tensor.collapse_shape %block [[0], [1, 2]] : tensor<4x3x5xf32> into tensor<4x15xf32>
  %e = tensor.empty() : tensor<4x15xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<4x15xf32>) -> tensor<4x15xf32>
  %r = linalg.generic {indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (k, n)>, affine_map<(m, n, k) -> (m, n)>], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%rows, %flat : tensor<4x4xf32>, tensor<4x15xf32>) outs(%f : tensor<4x15xf32>) {
  ^bb0(%x: f32, %y: f32, %s: f32):
    %p = arith.mulf %x, %y : f32
    %q = arith.addf %s, %p : f32
    linalg.yield %q : f32
  } -> tensor<4x15xf32>
  return %r : tensor<4x15xf32>
}

// Two sums that do not merge: the first product replaces, the others add.
// CHECK-LABEL: define void @baechi.kernel.two_sums(
// CHECK: %[[FIRST:.*]] = icmp eq i64 %[[L:.*]], 0
// CHECK: %[[BETA:.*]] = select i1 %[[FIRST]], float 0.000000e+00, float 1.000000e+00
// CHECK: call void @cblas_sgemm(i32 101, i32 111, i32 111, i32 12, i32 9, i32 7, float 1.000000e+00, ptr %{{.*}}, i32 7, ptr %{{.*}}, i32 9, float %[[BETA]], ptr %2, i32 9)
func.func private @two_sums(%a: tensor<4x12x7xf32>, %b: tensor<4x7x9xf32>) -> tensor<12x9xf32> attributes {baechi.kernel, baechi.implementation = "openblas"} {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<12x9xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<12x9xf32>) -> tensor<12x9xf32>
  %r = linalg.generic {indexing_maps = [affine_map<(l, m, n, k) -> (l, m, k)>, affine_map<(l, m, n, k) -> (l, k, n)>, affine_map<(l, m, n, k) -> (m, n)>], iterator_types = ["reduction", "parallel", "parallel", "reduction"]}
      ins(%a, %b : tensor<4x12x7xf32>, tensor<4x7x9xf32>) outs(%f : tensor<12x9xf32>) {
  ^bb0(%x: f32, %y: f32, %s: f32):
    %p = arith.mulf %x, %y : f32
    %q = arith.addf %s, %p : f32
    linalg.yield %q : f32
  } -> tensor<12x9xf32>
  return %r : tensor<12x9xf32>
}

// The start is copied unless it lies in the result's buffer already.
// CHECK-LABEL: define void @baechi.kernel.accumulate(
// CHECK: %[[SAME:.*]] = icmp eq ptr %2, %3
// CHECK: br i1 %[[SAME]]
// CHECK: call void @llvm.memcpy.p0.p0.i64({{.*}} %3, {{.*}} %2, i64 432, i1 false)
// CHECK: call void @cblas_sgemm(i32 101, i32 111, i32 111, i32 12, i32 9, i32 7, float 1.000000e+00, ptr %0, i32 7, ptr %1, i32 9, float 1.000000e+00, ptr %3, i32 9)
func.func private @accumulate(%a: tensor<12x7xf32>, %b: tensor<7x9xf32>, %start: tensor<12x9xf32>) -> (tensor<12x9xf32> {baechi.may_alias = array<i64: 2>}) attributes {baechi.kernel, baechi.implementation = "openblas"} {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<12x9xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<12x9xf32>) -> tensor<12x9xf32>
  %r = linalg.generic {indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (k, n)>, affine_map<(m, n, k) -> (m, n)>], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%a, %b : tensor<12x7xf32>, tensor<7x9xf32>) outs(%start : tensor<12x9xf32>) {
  ^bb0(%x: f32, %y: f32, %s: f32):
    %p = arith.mulf %x, %y : f32
    %q = arith.addf %s, %p : f32
    linalg.yield %q : f32
  } -> tensor<12x9xf32>
  return %r : tensor<12x9xf32>
}

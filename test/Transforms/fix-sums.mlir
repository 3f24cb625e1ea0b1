// Flags say how each sum is computed; the step and its kernels ask for that
// implementation. What a program says of its arithmetic goes.
//
// RUN: baechi-opt %s --baechi-fix-sums | FileCheck %s
// RUN: baechi-opt %s --baechi-fix-sums --baechi-form-kernels | FileCheck %s --check-prefix=FORMED
// RUN: baechi-opt %s --baechi-compile="machine=host:1 splits=exact" | FileCheck %s --check-prefix=CODE

#rows = affine_map<(i, j) -> (i, j)>
#sums = affine_map<(i, j) -> (i)>
#across = affine_map<(i, j) -> (j, i)>

// CHECK: func.func @step
// CHECK-SAME: baechi.implementation = "exact"
// FORMED: func.func private @{{.*}}baechi.implementation = "exact"
func.func @step(%x: tensor<8x64xf32>, %w: tensor<64x16xf32>,
                %half: tensor<64x16xf16>) -> (tensor<8x16xf32>, tensor<8xf32>, tensor<64xf32>, tensor<16xf16>) {
  %zero = arith.constant 0.0 : f32
  %zeroh = arith.constant 0.0 : f16

  // A product: fused multiply-adds, in a tile or not.
  %e0 = tensor.empty() : tensor<8x16xf32>
  %f0 = linalg.fill ins(%zero : f32) outs(%e0 : tensor<8x16xf32>) -> tensor<8x16xf32>
  // CHECK: arith.mulf %{{.*}} fastmath<contract>
  // CHECK-NEXT: arith.addf %{{.*}} fastmath<contract>
  // CODE-DAG: llvm.intr.fmuladd
  %0 = linalg.matmul ins(%x, %w : tensor<8x64xf32>, tensor<64x16xf32>) outs(%f0 : tensor<8x16xf32>) -> tensor<8x16xf32>

  // Terms that lie together: in lanes. They are computed as they are written.
  %e1 = tensor.empty() : tensor<8xf32>
  %f1 = linalg.fill ins(%zero : f32) outs(%e1 : tensor<8xf32>) -> tensor<8xf32>
  // CHECK: arith.mulf %{{[a-z]+}}, %{{[a-z]+}} : f32
  // CHECK-NEXT: arith.addf %{{.*}} fastmath<reassoc>
  // CODE-DAG: llvm.alloca %{{.*}} x f32
  %1 = linalg.generic {indexing_maps = [#rows, #sums], iterator_types = ["parallel", "reduction"]}
      ins(%x : tensor<8x64xf32>) outs(%f1 : tensor<8xf32>) {
  ^bb0(%in: f32, %out: f32):
    %square = arith.mulf %in, %in fastmath<fast> : f32
    %sum = arith.addf %out, %square fastmath<fast> : f32
    linalg.yield %sum : f32
  } -> tensor<8xf32>

  // Few terms, too, from half as many as there are lanes on.
  %e2 = tensor.empty() : tensor<64xf32>
  %f2 = linalg.fill ins(%zero : f32) outs(%e2 : tensor<64xf32>) -> tensor<64xf32>
  // CHECK: arith.addf %{{.*}} fastmath<reassoc>
  %2 = linalg.reduce ins(%w : tensor<64x16xf32>) outs(%f2 : tensor<64xf32>) dimensions = [1]
      (%in: f32, %out: f32) {
        %sum = arith.addf %in, %out : f32
        linalg.yield %sum : f32
      }
  %e3 = tensor.empty() : tensor<16xf16>
  %f3 = linalg.fill ins(%zeroh : f16) outs(%e3 : tensor<16xf16>) -> tensor<16xf16>
  // Apart: one after the other.
  // CHECK: arith.addf %{{[a-z]+}}, %{{[a-z]+}} : f16
  %3 = linalg.generic {indexing_maps = [#across, #sums], iterator_types = ["parallel", "reduction"]}
      ins(%half : tensor<64x16xf16>) outs(%f3 : tensor<16xf16>) {
  ^bb0(%in: f16, %out: f16):
    %sum = arith.addf %out, %in : f16
    linalg.yield %sum : f16
  } -> tensor<16xf16>
  return %0, %1, %2, %3 : tensor<8x16xf32>, tensor<8xf32>, tensor<64xf32>, tensor<16xf16>
}

// RUN: baechi-opt %s --baechi-lower-kernels | FileCheck %s

// dnnl_sgemm(transpose A, transpose B, M, N, K, alpha, A, lda, B, ldb, beta, C,
// ldc), row-major, on this thread alone; a failure stops the program.
// CHECK-LABEL: llvm.func @baechi.kernel.product(
// CHECK-DAG: %[[ONE:.*]] = llvm.mlir.constant(1 : i32)
// CHECK-DAG: %[[N:.*]] = llvm.mlir.constant(78 : i8)
// CHECK-DAG: %[[T:.*]] = llvm.mlir.constant(84 : i8)
// CHECK: llvm.call @omp_set_num_threads(%[[ONE]])
// CHECK: %[[STATUS:.*]] = llvm.call @dnnl_sgemm(%[[N]], %[[T]],
// CHECK: %[[FAILED:.*]] = llvm.icmp "ne" %[[STATUS]]
// CHECK: llvm.cond_br %[[FAILED]], ^[[TRAP:bb[0-9]+]]
// CHECK: ^[[TRAP]]:
// CHECK-NEXT: llvm.intr.trap
func.func private @product(%a: tensor<12x7xf32>, %b: tensor<9x7xf32>) -> tensor<12x9xf32> attributes {baechi.kernel, baechi.implementation = "onednn"} {
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

// Why operations stay apart from their readers, as remarks that are silent unless asked for.
// RUN: baechi-opt %s --baechi-form-kernels --remarks-filter-missed=baechi-form-kernels -o /dev/null 2>&1 | FileCheck %s
// RUN: baechi-opt %s --baechi-form-kernels=max-buffers=3 --remarks-filter-missed=baechi-form-kernels -o /dev/null 2>&1 | FileCheck %s --check-prefix=FEW
// RUN: baechi-opt %s --baechi-form-kernels -o /dev/null 2>&1 | count 0

// CHECK-DAG: not-fused{{.*}}Producer=product{{.*}}Reason="a contraction stays what libraries know
// CHECK-DAG: not-fused{{.*}}Producer=tanh{{.*}}Reason="the reader is a contraction, which stays what libraries know
// CHECK-DAG: not-fused{{.*}}Producer=row{{.*}}Reason="a broadcast element would be computed wherever it is read
// FEW: not-fused{{.*}}Reason="the kernel would read and write too many tensors
func.func @step(%x: tensor<8x8xf32>, %w: tensor<8x8xf32>, %b: tensor<8xf32>, %c: tensor<8xf32>) -> tensor<8x8xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<8x8xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<8x8xf32>) -> tensor<8x8xf32>
  %t = math.tanh %x : tensor<8x8xf32> loc("tanh")
  %p = linalg.matmul ins(%t, %w : tensor<8x8xf32>, tensor<8x8xf32>) outs(%f : tensor<8x8xf32>) -> tensor<8x8xf32> loc("product")
  %row = arith.addf %b, %c : tensor<8xf32> loc("row")
  %s = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (j)>, affine_map<(i, j) -> (i, j)>], iterator_types = ["parallel", "parallel"]}
      ins(%p, %row : tensor<8x8xf32>, tensor<8xf32>) outs(%e : tensor<8x8xf32>) {
  ^bb0(%u: f32, %v: f32, %o: f32):
    %r = arith.addf %u, %v : f32
    linalg.yield %r : f32
  } -> tensor<8x8xf32> loc("sum")
  %q = arith.mulf %s, %x : tensor<8x8xf32> loc("last")
  return %q : tensor<8x8xf32>
}

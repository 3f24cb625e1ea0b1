// Rows over their sums are one kernel, with or without a loop over the rows.
// RUN: baechi-opt %s --baechi-form-kernels | FileCheck %s --check-prefixes=CHECK,LOOPS
// RUN: baechi-opt %s --baechi-form-kernels=row-loops=false | FileCheck %s --check-prefixes=CHECK,WHOLE
// RUN: not baechi-opt %s --baechi-form-kernels=row-loops=perhaps 2>&1 | FileCheck %s --check-prefix=VALUE

// VALUE: 'perhaps' is invalid value for boolean argument
// CHECK-LABEL: func.func @normalize(
// CHECK-NEXT: call @[[KERNEL:[a-z0-9_]*]](
// CHECK-NEXT: return
// CHECK: func.func private @[[KERNEL]](
// LOOPS: scf.for
// WHOLE-NOT: scf.for
// WHOLE: outs({{.*}} : tensor<4xf32>)
// WHOLE: outs({{.*}} : tensor<4x8xf32>)
func.func @normalize(%x: tensor<4x8xf32>) -> tensor<4x8xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<4x8xf32>
  %er = tensor.empty() : tensor<4xf32>
  %z = linalg.fill ins(%zero : f32) outs(%er : tensor<4xf32>) -> tensor<4xf32>
  %s = linalg.reduce {arith.addf} ins(%x : tensor<4x8xf32>) outs(%z : tensor<4xf32>) dimensions = [1]
  %y = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i)>, affine_map<(i, j) -> (i, j)>], iterator_types = ["parallel", "parallel"]}
      ins(%x, %s : tensor<4x8xf32>, tensor<4xf32>) outs(%e : tensor<4x8xf32>) {
  ^bb0(%a: f32, %b: f32, %o: f32):
    %q = arith.divf %a, %b : f32
    linalg.yield %q : f32
  } -> tensor<4x8xf32>
  return %y : tensor<4x8xf32>
}

// RUN: baechi-opt %s --baechi-form-kernels | FileCheck %s

// Sums and products of halves are in single precision, rounded once: whatever
// form they have.

// CHECK-LABEL: func.func private @sum
// CHECK: linalg.fill ins(%{{.*}} : f32)
// CHECK: ^bb0(%[[A:.*]]: bf16, %[[SUM:.*]]: f32):
// CHECK-NEXT: %[[WIDE:.*]] = arith.extf %[[A]] : bf16 to f32
// CHECK-NEXT: %[[NEXT:.*]] = arith.addf %[[SUM]], %[[WIDE]] : f32
// CHECK-NEXT: linalg.yield %[[NEXT]] : f32
// CHECK: arith.truncf %{{.*}} : f32 to bf16

// CHECK-LABEL: func.func private @matmul
// CHECK: ^bb0(%[[A:.*]]: f16, %[[B:.*]]: f16, %[[SUM:.*]]: f32):
// CHECK-NEXT: %[[LEFT:.*]] = arith.extf %[[A]] : f16 to f32
// CHECK-NEXT: %[[RIGHT:.*]] = arith.extf %[[B]] : f16 to f32
// CHECK-NEXT: %[[PRODUCT:.*]] = arith.mulf %[[LEFT]], %[[RIGHT]] : f32
// CHECK-NEXT: arith.addf %[[SUM]], %[[PRODUCT]] : f32

// Nothing is added to a maximum.
// CHECK-LABEL: func.func private @max
// CHECK-NOT: f32
// CHECK: arith.maximumf %{{.*}} : bf16

// What begins from a tensor does so from its elements.
// CHECK-LABEL: func.func private @add_mul
// CHECK: ^bb0(%[[A:.*]]: bf16, %[[B:.*]]: bf16, %[[SUM:.*]]: f32):
// CHECK: arith.addf %{{.*}} : f32
// CHECK: arith.mulf %{{.*}} : f32
// CHECK: linalg.yield %{{.*}} : f32
func.func @step(%a: tensor<8x64xbf16>, %b: tensor<8x64xf16>, %c: tensor<64x8xf16>, %start: tensor<8xbf16>)
    -> (tensor<8xbf16>, tensor<8x8xf16>, tensor<8xbf16>, tensor<8xbf16>) {
  %zero = arith.constant 0.0 : bf16
  %none = tensor.empty() : tensor<8xbf16>
  %zeros = linalg.fill ins(%zero : bf16) outs(%none : tensor<8xbf16>) -> tensor<8xbf16>
  %sum = linalg.reduce {arith.addf} ins(%a : tensor<8x64xbf16>) outs(%zeros : tensor<8xbf16>) dimensions = [1]
  %half = arith.constant 0.0 : f16
  %none2 = tensor.empty() : tensor<8x8xf16>
  %zeros2 = linalg.fill ins(%half : f16) outs(%none2 : tensor<8x8xf16>) -> tensor<8x8xf16>
  %product = linalg.matmul ins(%b, %c : tensor<8x64xf16>, tensor<64x8xf16>) outs(%zeros2 : tensor<8x8xf16>) -> tensor<8x8xf16>
  %low = arith.constant 0xFF80 : bf16
  %lows = linalg.fill ins(%low : bf16) outs(%none : tensor<8xbf16>) -> tensor<8xbf16>
  %max = linalg.reduce {arith.maximumf} ins(%a : tensor<8x64xbf16>) outs(%lows : tensor<8xbf16>) dimensions = [1]
  %both = linalg.generic {
    indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i)>, affine_map<(i, j) -> (i)>],
    iterator_types = ["parallel", "reduction"]
  } ins(%a, %start : tensor<8x64xbf16>, tensor<8xbf16>) outs(%start : tensor<8xbf16>) {
  ^bb0(%x: bf16, %y: bf16, %out: bf16):
    %added = arith.addf %x, %out : bf16
    %scaled = arith.mulf %added, %y : bf16
    linalg.yield %scaled : bf16
  } -> tensor<8xbf16>
  return %sum, %product, %max, %both : tensor<8xbf16>, tensor<8x8xf16>, tensor<8xbf16>, tensor<8xbf16>
}

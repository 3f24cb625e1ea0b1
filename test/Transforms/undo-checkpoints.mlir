// What a scope says is computed again, is not, where the same stands before it.
//
// RUN: baechi-opt %s --baechi-undo-checkpoints --mlir-print-debuginfo --mlir-print-local-scope | FileCheck %s
// RUN: baechi-opt %s --baechi-undo-checkpoints --baechi-form-kernels | FileCheck %s --check-prefix=FORMED
// RUN: baechi-run %s --costs=roofline --steps=1 --json=%t.json | FileCheck %s --check-prefix=REPORT
// RUN: %python -c "import json, sys; print(json.load(open(sys.argv[1]))['checkpoints'])" %t.json | FileCheck %s --check-prefix=JSON
// RUN: baechi-opt %s --baechi-undo-checkpoints=keep=0 --mlir-print-debuginfo --mlir-print-local-scope | FileCheck %s --check-prefix=KEPT
// REPORT: again      jax.checkpoint: 2 operators: kept 0, undone 2 (64 B of results before fusion need not be computed again)
// JSON: 'bytes': 64, 'kept': 0, 'kept_regions': [], 'operators': 2
// JSON-SAME: 'undone': 2

// CHECK-LABEL: @step
// CHECK: %[[EMPTY:.*]] = tensor.empty
// CHECK: %[[EXP:.*]] = linalg.exp {{.*}} outs(%[[EMPTY]]
// CHECK: %[[TANH:.*]] = linalg.tanh ins(%[[EXP]]
// CHECK-NOT: linalg.exp
// What was computed nowhere before stays, as does what the program itself
// computes twice.
// CHECK: linalg.sqrt ins(%[[TANH]]
// CHECK: linalg.tanh ins(%[[EXP]]
// CHECK-SAME: loc("other/tanh")
// What hangs together is one region.
// KEPT-LABEL: @step
// KEPT: loc("backward/checkpoint/rematted_computation/layer/exp")
// KEPT: loc("backward/checkpoint/rematted_computation/layer/tanh")
// KEPT-LABEL: @stacked
// KEPT-NOT: loc("backward/rematted_computation/first")
// FORMED-LABEL: @step
// FORMED-NOT: rematted
func.func @step(%x: tensor<8xf32>) -> (tensor<8xf32>, tensor<8xf32>, tensor<8xf32>) {
  %e0 = tensor.empty() : tensor<8xf32>
  %0 = linalg.exp ins(%x : tensor<8xf32>) outs(%e0 : tensor<8xf32>) -> tensor<8xf32> loc("layer/exp")
  %e1 = tensor.empty() : tensor<8xf32>
  %1 = linalg.tanh ins(%0 : tensor<8xf32>) outs(%e1 : tensor<8xf32>) -> tensor<8xf32> loc("layer/tanh")
  %e2 = tensor.empty() : tensor<8xf32>
  %2 = linalg.exp ins(%x : tensor<8xf32>) outs(%e2 : tensor<8xf32>) -> tensor<8xf32> loc("backward/checkpoint/rematted_computation/layer/exp")
  %e3 = tensor.empty() : tensor<8xf32>
  %3 = linalg.tanh ins(%2 : tensor<8xf32>) outs(%e3 : tensor<8xf32>) -> tensor<8xf32> loc("backward/checkpoint/rematted_computation/layer/tanh")
  %e4 = tensor.empty() : tensor<8xf32>
  %4 = linalg.sqrt ins(%3 : tensor<8xf32>) outs(%e4 : tensor<8xf32>) -> tensor<8xf32> loc("backward/checkpoint/rematted_computation/layer/sqrt")
  %e5 = tensor.empty() : tensor<8xf32>
  %5 = linalg.tanh ins(%2 : tensor<8xf32>) outs(%e5 : tensor<8xf32>) -> tensor<8xf32> loc("other/tanh")
  return %1, %4, %5 : tensor<8xf32>, tensor<8xf32>, tensor<8xf32>
}

// States that a loop which is written out stacks are those that were stacked.
// A slice that reads two of them is another tensor, and so is a transposed one.
// CHECK-LABEL: @stacked
// CHECK-SAME: (%[[X:[^:]*]]: tensor<4x4xf32>
// CHECK: %[[FIRST:.*]] = linalg.exp ins(%[[X]]
// CHECK: linalg.exp ins(%[[FIRST]]
// CHECK-NOT: loc("backward/rematted_computation/first")
// CHECK: loc("backward/rematted_computation/both")
// CHECK: loc("backward/rematted_computation/turned")
func.func private @stacked(%x: tensor<4x4xf32>) -> (tensor<4x4xf32>, tensor<4x4xf32>, tensor<4x4xf32>, tensor<4x4xf32>) {
  %e = tensor.empty() : tensor<4x4xf32>
  %0 = linalg.exp ins(%x : tensor<4x4xf32>) outs(%e : tensor<4x4xf32>) -> tensor<4x4xf32>
  %1 = linalg.exp ins(%0 : tensor<4x4xf32>) outs(%e : tensor<4x4xf32>) -> tensor<4x4xf32>
  %one = tensor.empty() : tensor<1x4x4xf32>
  %a = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2) -> (d1, d2)>, affine_map<(d0, d1, d2) -> (d0, d1, d2)>], iterator_types = ["parallel", "parallel", "parallel"]} ins(%x : tensor<4x4xf32>) outs(%one : tensor<1x4x4xf32>) {
  ^bb0(%in: f32, %out: f32):
    linalg.yield %in : f32
  } -> tensor<1x4x4xf32>
  %b = tensor.expand_shape %0 [[0, 1], [2]] output_shape [1, 4, 4] : tensor<4x4xf32> into tensor<1x4x4xf32>
  %c = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2) -> (d2, d1)>, affine_map<(d0, d1, d2) -> (d0, d1, d2)>], iterator_types = ["parallel", "parallel", "parallel"]} ins(%x : tensor<4x4xf32>) outs(%one : tensor<1x4x4xf32>) {
  ^bb0(%in: f32, %out: f32):
    linalg.yield %in : f32
  } -> tensor<1x4x4xf32>
  %s = tensor.empty() : tensor<3x4x4xf32>
  %s0 = tensor.insert_slice %a into %s[0, 0, 0] [1, 4, 4] [1, 1, 1] : tensor<1x4x4xf32> into tensor<3x4x4xf32>
  %s1 = tensor.insert_slice %b into %s0[1, 0, 0] [1, 4, 4] [1, 1, 1] : tensor<1x4x4xf32> into tensor<3x4x4xf32>
  %s2 = tensor.insert_slice %c into %s1[2, 0, 0] [1, 4, 4] [1, 1, 1] : tensor<1x4x4xf32> into tensor<3x4x4xf32>
  %r0 = tensor.extract_slice %s2[0, 0, 0] [1, 4, 4] [1, 1, 1] : tensor<3x4x4xf32> to tensor<4x4xf32>
  %p0 = linalg.exp ins(%r0 : tensor<4x4xf32>) outs(%e : tensor<4x4xf32>) -> tensor<4x4xf32> loc("backward/rematted_computation/first")
  %r1 = tensor.extract_slice %s2[1, 0, 0] [1, 4, 4] [1, 1, 1] : tensor<3x4x4xf32> to tensor<4x4xf32>
  %p1 = linalg.exp ins(%r1 : tensor<4x4xf32>) outs(%e : tensor<4x4xf32>) -> tensor<4x4xf32> loc("backward/rematted_computation/first")
  %r2 = tensor.extract_slice %s2[0, 2, 0] [2, 2, 4] [1, 1, 1] : tensor<3x4x4xf32> to tensor<2x2x4xf32>
  %m2 = tensor.collapse_shape %r2 [[0, 1], [2]] : tensor<2x2x4xf32> into tensor<4x4xf32>
  %p2 = linalg.exp ins(%m2 : tensor<4x4xf32>) outs(%e : tensor<4x4xf32>) -> tensor<4x4xf32> loc("backward/rematted_computation/both")
  %r3 = tensor.extract_slice %s2[2, 0, 0] [1, 4, 4] [1, 1, 1] : tensor<3x4x4xf32> to tensor<4x4xf32>
  %p3 = linalg.exp ins(%r3 : tensor<4x4xf32>) outs(%e : tensor<4x4xf32>) -> tensor<4x4xf32> loc("backward/rematted_computation/turned")
  return %p0, %p1, %p2, %p3 : tensor<4x4xf32>, tensor<4x4xf32>, tensor<4x4xf32>, tensor<4x4xf32>
}

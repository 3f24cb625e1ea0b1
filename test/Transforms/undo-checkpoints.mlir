// What a scope says is computed again, is not, where the same stands before it.
//
// RUN: baechi-opt %s --baechi-undo-checkpoints --mlir-print-debuginfo --mlir-print-local-scope | FileCheck %s
// RUN: baechi-opt %s --baechi-undo-checkpoints --baechi-form-kernels | FileCheck %s --check-prefix=FORMED
// RUN: baechi-run %s --costs=roofline --steps=1 --json=%t.json | FileCheck %s --check-prefix=REPORT
// RUN: %python -c "import json, sys; print(json.load(open(sys.argv[1]))['checkpoints'])" %t.json | FileCheck %s --check-prefix=JSON
// REPORT: again      jax.checkpoint: 2 operators: kept 0, undone 2 (64 B are kept instead)
// JSON: 'bytes': 64, 'kept': 0, 'operators': 2
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

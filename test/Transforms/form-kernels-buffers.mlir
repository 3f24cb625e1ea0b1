// A bound on the tensors of a kernel: neither fusion nor grouping goes beyond it.
// RUN: baechi-opt %s --baechi-form-kernels | FileCheck %s --check-prefix=ANY
// RUN: baechi-opt %s --baechi-form-kernels=max-buffers=4 | FileCheck %s --check-prefix=FOUR

// Four tensors are added in one kernel of five buffers, or in two of four and three.
// ANY-LABEL: func.func @step
// ANY: call @
// ANY-NOT: call @
// ANY: return
// FOUR-LABEL: func.func @step
// FOUR: %[[SUM:.*]] = call @{{[a-z0-9_]+}}(%{{[a-z0-9]+}}, %{{[a-z0-9]+}}, %{{[a-z0-9]+}}) : (tensor<64xf32>, tensor<64xf32>, tensor<64xf32>) -> tensor<64xf32>
// FOUR: call @{{[a-z0-9_]+}}({{.*}}%[[SUM]]{{.*}}) : (tensor<64xf32>, tensor<64xf32>) -> tensor<64xf32>
// FOUR-NOT: call @
// FOUR: return
func.func @step(%a: tensor<64xf32>, %b: tensor<64xf32>, %c: tensor<64xf32>, %d: tensor<64xf32>) -> tensor<64xf32> {
  %0 = arith.addf %a, %b : tensor<64xf32>
  %1 = arith.addf %0, %c : tensor<64xf32>
  %2 = arith.addf %1, %d : tensor<64xf32>
  return %2 : tensor<64xf32>
}

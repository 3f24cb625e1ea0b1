// Costs that the program has are kept; replace=true computes them again.
// RUN: split-file %s %t
// RUN: baechi-opt %t/step.mlir --baechi-annotate-costs 2>&1 | FileCheck %s --check-prefix=KEEP
// RUN: baechi-opt %t/step.mlir --baechi-annotate-costs=replace=true 2>&1 | FileCheck %s --check-prefix=REPLACE
// RUN: baechi-opt %t/step.mlir --baechi-annotate-costs=roofline=host:50:10:200 2>&1 | FileCheck %s --check-prefix=GIVEN
// RUN: baechi-opt %t/step.mlir --baechi-annotate-costs="roofline=host:50:10:200 replace=true" 2>&1 | FileCheck %s --check-prefix=AGAIN
// What the pass wrote itself is one of these.
// RUN: baechi-opt %t/step.mlir --baechi-annotate-costs=replace=true | baechi-opt --baechi-annotate-costs="roofline=host:50:10:1000 replace=true" | FileCheck %s --check-prefix=REFRESH

// KEEP-NOT: warning
// KEEP: math.exp {{.*}}time_ns = {host = 7}, scratch = 3>
// KEEP: math.log {{.*}}time_ns = {cuda = {{[0-9]+}}, host = {{[0-9]+}}}
// KEEP: call @kernel({{.*}}time_ns = {host = 9}
// KEEP: call @kernel({{.*}}time_ns = {cuda = {{[0-9]+}}, host = {{[0-9]+}}}
// REPLACE-NOT: warning
// REPLACE: math.exp {{.*}}time_ns = {cuda = {{[0-9]+}}, host = {{[0-9]+}}}, scratch = 0>
// REPLACE-COUNT-2: call @kernel({{.*}}time_ns = {cuda =
// GIVEN: warning: 2 of 4 operators keep the costs that they had; replace=true computes them again
// GIVEN: math.exp {{.*}}time_ns = {host = 7}
// GIVEN: math.log {{.*}}time_ns = {host = 204}
// AGAIN-NOT: warning
// AGAIN: math.exp {{.*}}time_ns = {host = 204}
// REFRESH: math.exp {{.*}}time_ns = {host = 1004}

// Examples with costs by hand keep them.
// RUN: baechi-opt %S/../../examples/fork_join.mlir -o %t.original
// RUN: baechi-opt %S/../../examples/fork_join.mlir --baechi-annotate-costs | cmp - %t.original

//--- step.mlir
func.func @step(%x: tensor<4xf32>) -> tensor<4xf32> {
  %0 = math.exp %x {baechi.cost = #baechi.cost<time_ns = {host = 7}, scratch = 3>} : tensor<4xf32>
  %1 = math.log %0 : tensor<4xf32>
  %2 = call @kernel(%1) {baechi.cost = #baechi.cost<time_ns = {host = 9}, scratch = 0>} : (tensor<4xf32>) -> tensor<4xf32>
  %3 = call @kernel(%2) : (tensor<4xf32>) -> tensor<4xf32>
  return %3 : tensor<4xf32>
}
func.func private @kernel(%x: tensor<4xf32>) -> tensor<4xf32> attributes {baechi.kernel} {
  %0 = arith.addf %x, %x : tensor<4xf32>
  return %0 : tensor<4xf32>
}

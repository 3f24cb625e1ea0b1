// RUN: baechi-opt %s --allow-unregistered-dialect --baechi-expand-replicas --canonicalize | FileCheck %s

// Numbers that a double does not tell apart: three turns of two replicas.
// CHECK-COUNT-2: "test.use"(%{{.*}}, %c9007199254740993_i64)
// CHECK-COUNT-2: "test.use"(%{{.*}}, %c9007199254740994_i64)
// CHECK-COUNT-2: "test.use"(%{{.*}}, %c9007199254740995_i64)
// CHECK-NOT: "test.use"
func.func @big(%x: tensor<4xf32> {baechi.batched}) -> tensor<4xf32> {
  %lo = arith.constant 9007199254740993 : i64
  %hi = arith.constant 9007199254740996 : i64
  %one = arith.constant 1 : i64
  %0 = scf.for %i = %lo to %hi step %one iter_args(%s = %x) -> tensor<4xf32> : i64 {
    %next = "stablehlo.collective_permute"(%s) <{source_target_pairs = dense<[[0, 1], [1, 0]]> : tensor<2x2xi64>}> : (tensor<4xf32>) -> tensor<4xf32>
    %u = "test.use"(%next, %i) : (tensor<4xf32>, i64) -> tensor<4xf32>
    scf.yield %u : tensor<4xf32>
  }
  return %0 : tensor<4xf32>
}

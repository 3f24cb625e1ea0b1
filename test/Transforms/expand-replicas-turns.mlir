// RUN: baechi-opt %s --allow-unregistered-dialect --baechi-expand-replicas --canonicalize | FileCheck %s

// What replicas exchange in a loop is there in each of its turns.

// CHECK-LABEL: func.func @step(
// CHECK-NOT: scf
// CHECK: %[[X0:.*]] = tensor.extract_slice %{{.*}}[0] [4] [1]
// CHECK: %[[X1:.*]] = tensor.extract_slice %{{.*}}[4] [4] [1]

// A loop of one turn, whose sum is that of both.
// CHECK: %[[A0:.*]] = tensor.insert %{{.*}} into %[[X0]][%c1]
// CHECK: %[[A1:.*]] = tensor.insert %{{.*}} into %[[X1]][%c1]
// CHECK: %[[SUM:.*]] = linalg.generic {{.*}} ins(%[[A0]], %[[A1]]

// Of one that counts 9, 6, each turn has two of the loop within, in which
// replicas give each other what they have.
// CHECK: %[[B0:.*]] = tensor.insert %{{.*}} into %[[X1]][%c1]
// CHECK: %[[B1:.*]] = tensor.insert %{{.*}} into %[[X0]][%c1]
// CHECK: %[[C0:.*]] = tensor.insert %{{.*}} into %[[B1]][%c2]
// CHECK: %[[C1:.*]] = tensor.insert %{{.*}} into %[[B0]][%c2]
// CHECK: %[[D0:.*]] = "test.use"(%[[C0]], %c9)
// CHECK: %[[D1:.*]] = "test.use"(%[[C1]], %c9)
// CHECK: %[[E0:.*]] = tensor.insert %{{.*}} into %[[D1]][%c1]
// CHECK: %[[E1:.*]] = tensor.insert %{{.*}} into %[[D0]][%c1]
// CHECK: %[[F0:.*]] = tensor.insert %{{.*}} into %[[E1]][%c2]
// CHECK: %[[F1:.*]] = tensor.insert %{{.*}} into %[[E0]][%c2]
// CHECK: %[[G0:.*]] = "test.use"(%[[F0]], %c6)
// CHECK: %[[G1:.*]] = "test.use"(%[[F1]], %c6)
// CHECK-NOT: "test.use"
// CHECK: %[[FIRST:.*]] = tensor.insert_slice %[[G0]] into %{{.*}}[0] [4] [1]
// CHECK: %[[BOTH:.*]] = tensor.insert_slice %[[G1]] into %[[FIRST]][4] [4] [1]
// CHECK: return %[[SUM]], %[[BOTH]]
func.func @step(%x: tensor<4xf32> {baechi.batched}) -> (tensor<4xf32>, tensor<4xf32>) {
  %one = arith.constant 1 : index
  %two = arith.constant 2 : index
  %three = arith.constant 3 : index
  %zero = arith.constant 0.0 : f32
  %0 = scf.for %i = %one to %three step %two iter_args(%s = %x) -> tensor<4xf32> {
    %next = tensor.insert %zero into %s[%i] : tensor<4xf32>
    %sum = "stablehlo.all_reduce"(%next) <{replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>}> ({
    ^bb0(%a: tensor<f32>, %b: tensor<f32>):
      %t = "stablehlo.add"(%a, %b) : (tensor<f32>, tensor<f32>) -> tensor<f32>
      "stablehlo.return"(%t) : (tensor<f32>) -> ()
    }) : (tensor<4xf32>) -> tensor<4xf32>
    scf.yield %sum : tensor<4xf32>
  }
  %first = arith.constant dense<9> : tensor<i32>
  %1:2 = scf.while (%c = %first, %s = %x) : (tensor<i32>, tensor<4xf32>) -> (tensor<i32>, tensor<4xf32>) {
    %number = tensor.extract %c[] : tensor<i32>
    %end = arith.constant 4 : i32
    %more = arith.cmpi sgt, %number, %end : i32
    scf.condition(%more) %c, %s : tensor<i32>, tensor<4xf32>
  } do {
  ^bb0(%c: tensor<i32>, %s: tensor<4xf32>):
    %below = arith.constant dense<-3> : tensor<i32>
    %next = arith.addi %c, %below : tensor<i32>
    %number = tensor.extract %c[] : tensor<i32>
    %place = arith.index_cast %number : i32 to index
    // A loop within a loop.
    %inner = scf.for %i = %one to %three step %one iter_args(%t = %s) -> tensor<4xf32> {
      %passed = "stablehlo.collective_permute"(%t) <{source_target_pairs = dense<[[0, 1], [1, 0]]> : tensor<2x2xi64>}> : (tensor<4xf32>) -> tensor<4xf32>
      %marked = tensor.insert %zero into %passed[%i] : tensor<4xf32>
      scf.yield %marked : tensor<4xf32>
    }
    %done = "test.use"(%inner, %place) : (tensor<4xf32>, index) -> tensor<4xf32>
    scf.yield %next, %done : tensor<i32>, tensor<4xf32>
  }
  return %0, %1#1 : tensor<4xf32>, tensor<4xf32>
}

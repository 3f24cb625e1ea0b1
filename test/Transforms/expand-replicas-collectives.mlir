// RUN: baechi-opt %s --allow-unregistered-dialect --split-input-file --baechi-expand-replicas | FileCheck %s

// Four replicas: sums are of pairs in their order, and groups have their own.

// CHECK-LABEL: func.func @sums(
// CHECK-SAME: %[[X:.*]]: tensor<16xf32>
// CHECK-DAG: %[[X0:.*]] = tensor.extract_slice %[[X]][0]
// CHECK-DAG: %[[X1:.*]] = tensor.extract_slice %[[X]][4]
// CHECK-DAG: %[[X2:.*]] = tensor.extract_slice %[[X]][8]
// CHECK-DAG: %[[X3:.*]] = tensor.extract_slice %[[X]][12]
// CHECK: %[[A:.*]] = linalg.generic {{.*}} ins(%[[X0]], %[[X1]]
// CHECK: %[[B:.*]] = linalg.generic {{.*}} ins(%[[X2]], %[[X3]]
// CHECK: linalg.generic {{.*}} ins(%[[A]], %[[B]]
// CHECK: linalg.generic {{.*}} ins(%[[X0]], %[[X2]]
// CHECK: arith.maximumf
// CHECK: linalg.generic {{.*}} ins(%[[X1]], %[[X3]]
// CHECK: arith.maximumf
module attributes {mhlo.num_replicas = 4 : i32} {
  func.func @sums(%x: tensor<4xf32> {baechi.batched}) -> (tensor<4xf32>, tensor<4xf32>) {
    %0 = "stablehlo.all_reduce"(%x) <{replica_groups = dense<> : tensor<0x0xi64>}> ({
    ^bb0(%a: tensor<f32>, %b: tensor<f32>):
      %s = "stablehlo.add"(%a, %b) : (tensor<f32>, tensor<f32>) -> tensor<f32>
      "stablehlo.return"(%s) : (tensor<f32>) -> ()
    }) : (tensor<4xf32>) -> tensor<4xf32>
    %1 = "stablehlo.all_reduce"(%x) <{replica_groups = dense<[[0, 2], [1, 3]]> : tensor<2x2xi64>}> ({
    ^bb0(%a: tensor<f32>, %b: tensor<f32>):
      %s = "stablehlo.maximum"(%a, %b) : (tensor<f32>, tensor<f32>) -> tensor<f32>
      "stablehlo.return"(%s) : (tensor<f32>) -> ()
    }) : (tensor<4xf32>) -> tensor<4xf32>
    return %0, %1 : tensor<4xf32>, tensor<4xf32>
  }
}

// -----

// Gathered rows are one value for all; parts of sums, of exchanged parts and
// what comes from a neighbour are each replica's own.

// CHECK-LABEL: func.func @others(
// CHECK-SAME: %[[X:.*]]: tensor<8x2xi32> {baechi.batched}) -> (tensor<8x2xi32>, tensor<4x2xi32>, tensor<4x4xi32>, tensor<8x2xi32>)
// CHECK-DAG: %[[X0:.*]] = tensor.extract_slice %[[X]][0, 0] [4, 2]
// CHECK-DAG: %[[X1:.*]] = tensor.extract_slice %[[X]][4, 0] [4, 2]
// CHECK: %[[A:.*]] = tensor.insert_slice %[[X0]] into %{{.*}}[0, 0] [4, 2]
// CHECK: %[[GATHERED:.*]] = tensor.insert_slice %[[X1]] into %[[A]][4, 0] [4, 2]
// CHECK-DAG: %[[P00:.*]] = tensor.extract_slice %[[X0]][0, 0] [2, 2]
// CHECK-DAG: %[[P10:.*]] = tensor.extract_slice %[[X1]][0, 0] [2, 2]
// CHECK: %[[S0:.*]] = linalg.generic {{.*}} ins(%[[P00]], %[[P10]]
// CHECK: arith.addi
// CHECK: tensor.insert_slice %{{.*}} into %{{.*}}[0, 2] [2, 2]
// CHECK: %[[ZEROS:.*]] = arith.constant dense<0> : tensor<4x2xi32>
// CHECK: tensor.insert_slice %[[S0]] into
// CHECK: tensor.insert_slice %[[ZEROS]] into %{{.*}}[0, 0] [4, 2]
// CHECK: tensor.insert_slice %[[X0]] into %{{.*}}[4, 0] [4, 2]
// CHECK: return %[[GATHERED]],
func.func @others(%x: tensor<4x2xi32> {baechi.batched}) -> (tensor<8x2xi32>, tensor<2x2xi32>, tensor<2x4xi32>, tensor<4x2xi32>) {
  %0 = "stablehlo.all_gather"(%x) <{all_gather_dim = 0 : i64, replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>}> : (tensor<4x2xi32>) -> tensor<8x2xi32>
  %1 = "stablehlo.reduce_scatter"(%x) <{scatter_dimension = 0 : i64, replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>}> ({
  ^bb0(%a: tensor<i32>, %b: tensor<i32>):
    %s = "stablehlo.add"(%a, %b) : (tensor<i32>, tensor<i32>) -> tensor<i32>
    "stablehlo.return"(%s) : (tensor<i32>) -> ()
  }) : (tensor<4x2xi32>) -> tensor<2x2xi32>
  %2 = "stablehlo.all_to_all"(%x) <{split_dimension = 0 : i64, concat_dimension = 1 : i64, split_count = 2 : i64, replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>}> : (tensor<4x2xi32>) -> tensor<2x4xi32>
  %3 = "stablehlo.collective_permute"(%x) <{source_target_pairs = dense<[[0, 1]]> : tensor<1x2xi64>}> : (tensor<4x2xi32>) -> tensor<4x2xi32>
  return %0, %1, %2, %3 : tensor<8x2xi32>, tensor<2x2xi32>, tensor<2x4xi32>, tensor<4x2xi32>
}

// -----

// A replica's number is a constant; what is the same for two is there once.

// CHECK-LABEL: func.func @numbers(
// CHECK-DAG: %[[C0:.*]] = arith.constant dense<0> : tensor<i32>
// CHECK-DAG: %[[C1:.*]] = arith.constant dense<1> : tensor<i32>
// CHECK: %[[A:.*]] = linalg.generic {{.*}} ins(%[[C0]] : tensor<i32>)
// CHECK: %[[B:.*]] = linalg.generic {{.*}} ins(%[[C1]] : tensor<i32>)
// CHECK: tensor.insert_slice %[[B]] into %{{.*}}[0] [4] [1]
// CHECK: math.absi
// CHECK-NOT: math.absi
// CHECK: return
module attributes {mhlo.num_replicas = 2 : i32} {
  func.func @numbers() -> (tensor<4xi32>, tensor<4xi32>) {
    %0 = "stablehlo.replica_id"() : () -> tensor<i32>
    %e = tensor.empty() : tensor<4xi32>
    %1 = linalg.generic {indexing_maps = [affine_map<(d0) -> ()>, affine_map<(d0) -> (d0)>], iterator_types = ["parallel"]} ins(%0 : tensor<i32>) outs(%e : tensor<4xi32>) {
    ^bb0(%a: i32, %b: i32):
      linalg.yield %a : i32
    } -> tensor<4xi32>
    %2 = "stablehlo.all_reduce"(%1) <{replica_groups = dense<[[0], [1]]> : tensor<2x1xi64>}> ({
    ^bb0(%a: tensor<i32>, %b: tensor<i32>):
      %s = "stablehlo.maximum"(%a, %b) : (tensor<i32>, tensor<i32>) -> tensor<i32>
      "stablehlo.return"(%s) : (tensor<i32>) -> ()
    }) : (tensor<4xi32>) -> tensor<4xi32>
    %3 = "stablehlo.collective_permute"(%2) <{source_target_pairs = dense<[[1, 0]]> : tensor<1x2xi64>}> : (tensor<4xi32>) -> tensor<4xi32>
    %4 = "stablehlo.all_gather"(%3) <{all_gather_dim = 0 : i64, replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>}> : (tensor<4xi32>) -> tensor<8xi32>
    %5 = tensor.extract_slice %4[0] [4] [1] : tensor<8xi32> to tensor<4xi32>
    %6 = math.absi %5 : tensor<4xi32>
    return %1, %6 : tensor<4xi32>, tensor<4xi32>
  }
}

// -----

// What is of one device stays as it is.

// CHECK-LABEL: func.func @alone(
// CHECK-NEXT: math.exp
// CHECK-NOT: baechi.replicas
func.func @alone(%x: tensor<4xf32>) -> tensor<4xf32> {
  %0 = math.exp %x : tensor<4xf32>
  return %0 : tensor<4xf32>
}

// -----

// What StableHLO's own lowering to linalg leaves.

// CHECK-LABEL: func.func @lowered(
// CHECK: linalg.generic {{.*}} {baechi.partials}
// CHECK: arith.maxui
// CHECK: %[[C1:.*]] = arith.constant dense<1> : tensor<i32>
// CHECK: math.absi %[[C1]] : tensor<i32>
// CHECK-NOT: stablehlo
// CHECK-NOT: unrealized
func.func @lowered(%x: tensor<4xi32> {baechi.batched}) -> (tensor<4xi32>, tensor<4xi32>) {
  %0 = "stablehlo.all_reduce"(%x) <{replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>}> ({
  ^bb0(%a: tensor<i32>, %b: tensor<i32>):
    %e = tensor.empty() : tensor<i32>
    %s = linalg.generic {indexing_maps = [affine_map<() -> ()>, affine_map<() -> ()>, affine_map<() -> ()>], iterator_types = []} ins(%a, %b : tensor<i32>, tensor<i32>) outs(%e : tensor<i32>) {
    ^bb0(%c: i32, %d: i32, %o: i32):
      %m = arith.maxui %c, %d : i32
      linalg.yield %m : i32
    } -> tensor<i32>
    "stablehlo.return"(%s) : (tensor<i32>) -> ()
  }) : (tensor<4xi32>) -> tensor<4xi32>
  %1 = "stablehlo.replica_id"() : () -> tensor<ui32>
  %2 = builtin.unrealized_conversion_cast %1 : tensor<ui32> to tensor<i32>
  %3 = math.absi %2 : tensor<i32>
  %e = tensor.empty() : tensor<4xi32>
  %4 = linalg.broadcast ins(%3 : tensor<i32>) outs(%e : tensor<4xi32>) dimensions = [0]
  return %0, %4 : tensor<4xi32>, tensor<4xi32>
}

// -----

// With partitions, the channel and use_global_device_ids say that it is those
// which exchange; all of them are one replica.
// CHECK-LABEL: func.func @partitions(
// CHECK-DAG: %[[ZERO:.*]] = arith.constant dense<0> : tensor<i32>
// CHECK-DAG: %[[ONE:.*]] = arith.constant dense<1> : tensor<i32>
// CHECK: %[[A:.*]] = arith.addi %[[ZERO]], %[[ZERO]]
// CHECK: %[[B:.*]] = arith.addi %[[ONE]], %[[ZERO]]
// CHECK: linalg.generic {{.*}} ins(%[[A]], %[[B]]
module attributes {mhlo.num_partitions = 2 : i32} {
  func.func @partitions() -> tensor<i32> {
    %0 = "stablehlo.partition_id"() : () -> tensor<i32>
    %1 = "stablehlo.replica_id"() : () -> tensor<i32>
    %2 = arith.addi %0, %1 : tensor<i32>
    %3 = "stablehlo.all_reduce"(%2) <{channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>, replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>, use_global_device_ids}> ({
    ^bb0(%a: tensor<i32>, %b: tensor<i32>):
      %s = "stablehlo.add"(%a, %b) : (tensor<i32>, tensor<i32>) -> tensor<i32>
      "stablehlo.return"(%s) : (tensor<i32>) -> ()
    }) : (tensor<i32>) -> tensor<i32>
    return %3 : tensor<i32>
  }
}

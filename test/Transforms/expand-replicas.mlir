// RUN: baechi-opt %s --allow-unregistered-dialect --baechi-expand-replicas | FileCheck %s
// RUN: baechi-opt %s --allow-unregistered-dialect --baechi-expand-replicas --baechi-replicate=replicas=2 --baechi-form-kernels --baechi-pin-replicas=machine=host:2 | FileCheck %s --check-prefix=PINS

// Gradients are of each replica, their sum and the update are there once.

// CHECK-LABEL: func.func @step(
// CHECK-SAME: %[[W:[^:]*]]: tensor<8x4xf32> {baechi.updated_by = 0 : i64}
// CHECK-SAME: %[[X:[^:]*]]: tensor<32x8xf32> {baechi.batched})
// CHECK-SAME: -> (tensor<8x4xf32>, tensor<32x4xf32>)
// CHECK-SAME: baechi.replicas = 2 : i64
// CHECK: %[[X0:.*]] = tensor.extract_slice %[[X]][0, 0] [16, 8] [1, 1]
// CHECK: %[[X1:.*]] = tensor.extract_slice %[[X]][16, 0] [16, 8] [1, 1]
// CHECK: %[[Y0:.*]] = linalg.matmul ins(%[[X0]], %[[W]]
// CHECK: %[[Y1:.*]] = linalg.matmul ins(%[[X1]], %[[W]]
// CHECK: %[[G0:.*]] = linalg.generic {{.*}} ins(%[[X0]], %[[Y0]]
// CHECK: %[[G1:.*]] = linalg.generic {{.*}} ins(%[[X1]], %[[Y1]]
// CHECK: %[[SUM:.*]] = linalg.generic {{.*}} ins(%[[G0]], %[[G1]]
// CHECK: arith.addf
// CHECK: arith.subf %[[W]], %[[SUM]]
// CHECK-NOT: arith.subf
// CHECK: %[[A:.*]] = tensor.insert_slice %[[Y0]] into %{{.*}}[0, 0] [16, 4] [1, 1]
// CHECK: %[[B:.*]] = tensor.insert_slice %[[Y1]] into %[[A]][16, 0] [16, 4] [1, 1]
// CHECK: return %{{.*}}, %[[B]]

// Its parts of the batch are a replica's own arguments, and of what it makes
// results; it computes on its own device.

// PINS-LABEL: func.func @step(
// PINS-SAME: baechi.name = "arg1.piece0"
// PINS-SAME: baechi.name = "arg1.piece1"
// PINS-DAG: call @{{.*}} {baechi.pin = "host0", baechi.replica = 0 : i64}
// PINS-DAG: call @{{.*}} {baechi.pin = "host1", baechi.replica = 1 : i64}
#rows = affine_map<(n, i, o) -> (n, i)>
#weights = affine_map<(n, i, o) -> (i, o)>
#outputs = affine_map<(n, i, o) -> (n, o)>
func.func @step(%w: tensor<8x4xf32> {baechi.updated_by = 0 : i64}, %x: tensor<16x8xf32> {baechi.batched}) -> (tensor<8x4xf32>, tensor<16x4xf32>) {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<16x4xf32>
  %z = linalg.fill ins(%zero : f32) outs(%e : tensor<16x4xf32>) -> tensor<16x4xf32>
  %y = linalg.matmul ins(%x, %w : tensor<16x8xf32>, tensor<8x4xf32>) outs(%z : tensor<16x4xf32>) -> tensor<16x4xf32>
  %eg = tensor.empty() : tensor<8x4xf32>
  %zg = linalg.fill ins(%zero : f32) outs(%eg : tensor<8x4xf32>) -> tensor<8x4xf32>
  %g = linalg.generic {indexing_maps = [#rows, #outputs, #weights], iterator_types = ["reduction", "parallel", "parallel"]}
      ins(%x, %y : tensor<16x8xf32>, tensor<16x4xf32>) outs(%zg : tensor<8x4xf32>) {
  ^bb0(%a: f32, %b: f32, %c: f32):
    %p = arith.mulf %a, %b : f32
    %s = arith.addf %c, %p : f32
    linalg.yield %s : f32
  } -> tensor<8x4xf32>
  %sum = "stablehlo.all_reduce"(%g) <{channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>, replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>, use_global_device_ids}> ({
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    %s = "stablehlo.add"(%a, %b) : (tensor<f32>, tensor<f32>) -> tensor<f32>
    "stablehlo.return"(%s) : (tensor<f32>) -> ()
  }) : (tensor<8x4xf32>) -> tensor<8x4xf32>
  %next = arith.subf %w, %sum : tensor<8x4xf32>
  return %next, %y : tensor<8x4xf32>, tensor<16x4xf32>
}

// RUN: baechi-opt %s --baechi-export-sdy="machine=host:2 choose=false plan=%t.json" | FileCheck %s --implicit-check-not=baechi.
// RUN: FileCheck %s --check-prefix=PLAN < %t.json

// Rows of the batch: the product and what follows it have pieces; the weight's
// gradient and the loss are sums that all devices join, the update is whole. A
// sum that is moved first is joined behind that.
// CHECK: "sdy.mesh"() <{mesh = #sdy.mesh<["devices"=2]>, sym_name = "mesh"}> : () -> ()
// CHECK: func.func @step(
// CHECK-SAME: tensor<4x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"devices"}, {}]>}
// CHECK-SAME: tensor<8x6xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {}]>}
// CHECK-SAME: -> (tensor<4x6xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"devices"}, {}]>},
// CHECK-SAME: tensor<8x6xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {}]>},
// CHECK-SAME: tensor<f32> {sdy.sharding = #sdy.sharding<@mesh, []>},
// CHECK-SAME: tensor<24xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"devices"}]>},
// CHECK: tensor.empty() : tensor<4x6xf32>
// CHECK: linalg.matmul {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"devices"}, {}]>]>}
// CHECK: math.tanh %{{.*}} {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"devices"}, {}]>]>}
// CHECK: linalg.generic {{.*}} {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{}, {}], unreduced={"devices"}>]>}
// CHECK: linalg.transpose {{.*}}{sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{}, {}]>]>}
// CHECK: arith.subf {{.*}} {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{}, {}]>]>}
// CHECK: linalg.reduce {{.*}}{sdy.sharding = #sdy.sharding_per_value<[<@mesh, []>]>}
// CHECK: tensor.collapse_shape {{.*}} {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"devices"}]>]>}
// A piece of the joined dimension that is no block has an open sharding, and is
// put together where it is returned.
// CHECK: linalg.transpose {{.*}} {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{}, {"devices"}]>]>}
// CHECK: tensor.collapse_shape {{.*}} {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{?}]>]>}

// PLAN: "arguments": [
// PLAN-NEXT: 0,
// PLAN-NEXT: null
// PLAN: "collectives": [
// PLAN: "kind": "all-reduce",
// PLAN-NEXT: "of": "transposed",
// PLAN-NEXT: "shape": [
// PLAN-NEXT: 8,
// PLAN-NEXT: 6
// PLAN: "type": "f32"
// PLAN: "kind": "all-reduce",
// PLAN-NEXT: "of": "loss",
// PLAN-NEXT: "shape": [],
// PLAN: "kind": "all-gather",
// PLAN-NEXT: "of": "columns",
// PLAN: "devices": 2,
// PLAN: "results": [
// PLAN-NEXT: 0,
// PLAN-NEXT: null,
// PLAN-NEXT: null,
// PLAN-NEXT: 0,
// PLAN-NEXT: null
func.func @step(%x: tensor<4x8xf32> {baechi.name = "x", baechi.split = #baechi.split<dim = 0, sizes = [2, 2]>}, %w: tensor<8x6xf32> {baechi.name = "w", baechi.updated_by = 1 : i64}) -> (tensor<4x6xf32>, tensor<8x6xf32>, tensor<f32>, tensor<24xf32>, tensor<24xf32>) {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<4x6xf32>
  %z = linalg.fill ins(%zero : f32) outs(%e : tensor<4x6xf32>) -> tensor<4x6xf32>
  %p = linalg.matmul ins(%x, %w : tensor<4x8xf32>, tensor<8x6xf32>) outs(%z : tensor<4x6xf32>) -> tensor<4x6xf32>
  %t = math.tanh %p : tensor<4x6xf32>
  %ge = tensor.empty() : tensor<6x8xf32>
  %gz = linalg.fill ins(%zero : f32) outs(%ge : tensor<6x8xf32>) -> tensor<6x8xf32>
  %g = linalg.generic {indexing_maps = [affine_map<(i, j, k) -> (k, i)>, affine_map<(i, j, k) -> (k, j)>, affine_map<(i, j, k) -> (i, j)>], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%t, %x : tensor<4x6xf32>, tensor<4x8xf32>) outs(%gz : tensor<6x8xf32>) {
  ^bb0(%a: f32, %b: f32, %out: f32):
    %m = arith.mulf %a, %b : f32
    %s = arith.addf %out, %m : f32
    linalg.yield %s : f32
  } -> tensor<6x8xf32>
  %we = tensor.empty() : tensor<8x6xf32>
  %gt = linalg.transpose ins(%g : tensor<6x8xf32>) outs(%we : tensor<8x6xf32>) permutation = [1, 0] {baechi.name = "transposed"}
  %new = arith.subf %w, %gt : tensor<8x6xf32>
  %le = tensor.empty() : tensor<f32>
  %lz = linalg.fill ins(%zero : f32) outs(%le : tensor<f32>) -> tensor<f32>
  %loss = linalg.reduce ins(%t : tensor<4x6xf32>) outs(%lz : tensor<f32>) dimensions = [0, 1] {baechi.name = "loss"}
    (%in: f32, %acc: f32) {
      %s = arith.addf %in, %acc : f32
      linalg.yield %s : f32
    }
  %rows = tensor.collapse_shape %t [[0, 1]] : tensor<4x6xf32> into tensor<24xf32>
  %te = tensor.empty() : tensor<6x4xf32>
  %turned = linalg.transpose ins(%t : tensor<4x6xf32>) outs(%te : tensor<6x4xf32>) permutation = [1, 0] {baechi.name = "columns"}
  %columns = tensor.collapse_shape %turned [[0, 1]] : tensor<6x4xf32> into tensor<24xf32>
  return %t, %new, %loss, %rows, %columns : tensor<4x6xf32>, tensor<8x6xf32>, tensor<f32>, tensor<24xf32>, tensor<24xf32>
}

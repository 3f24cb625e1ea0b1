// What forbids to cut a structured operation, in the remarks' words.
// RUN: baechi-opt %s --baechi-split=reductions=true --remarks-filter=baechi-split 2>&1 | FileCheck %s

// CHECK-DAG: loc("place"): [Missed] not-split | {{.*}}Reason="it reads one place of the dimension"
// CHECK-DAG: loc("computed"): [Missed] not-split | {{.*}}Reason="its body reads the tensor at computed positions"
// CHECK-DAG: loc("part"): [Missed] not-split | {{.*}}Reason="its loop is not over the whole dimension"
// CHECK-DAG: loc("diagonal"): [Missed] not-split | {{.*}}Reason="it reads a diagonal along the dimension"
// CHECK-DAG: loc("position"): [Missed] not-split | {{.*}}Reason="its body computes with positions in a dimension that was reshaped"
// CHECK-DAG: loc("missing"): [Missed] not-split | {{.*}}Reason="not all its results have the dimension"
// CHECK-DAG: loc("twofold"): [Missed] not-split | {{.*}}Reason="it reduces the dimension by more than one associative operation"
func.func @step(%x: tensor<4xf32> {baechi.split = #baechi.split<dim = 0, sizes = [2, 2]>},
                %y: tensor<3x4xf32> {baechi.split = #baechi.split<dim = 1, sizes = [2, 2]>},
                %z: tensor<4x4xf32> {baechi.split = #baechi.split<dim = 0, sizes = [2, 2]>},
                %start: tensor<f32>) -> (tensor<3xf32>, tensor<4xf32>, tensor<2xf32>, tensor<4xf32>, tensor<12xf32>, tensor<4xf32>, tensor<2xf32>, tensor<f32>) {
  %e2 = tensor.empty() : tensor<2xf32>
  %e3 = tensor.empty() : tensor<3xf32>
  %e4 = tensor.empty() : tensor<4xf32>
  %e12 = tensor.empty() : tensor<12xf32>
  %x_follows = math.exp %x : tensor<4xf32>
  %z_follows = math.exp %z : tensor<4x4xf32>
  %place = linalg.generic {indexing_maps = [affine_map<(i) -> (0)>, affine_map<(i) -> (i)>], iterator_types = ["parallel"]} ins(%x : tensor<4xf32>) outs(%e3 : tensor<3xf32>) {
  ^bb0(%a: f32, %out: f32):
    linalg.yield %a : f32
  } -> tensor<3xf32> loc("place")
  %computed = linalg.generic {indexing_maps = [affine_map<(i) -> (i)>], iterator_types = ["parallel"]} outs(%e4 : tensor<4xf32>) {
  ^bb0(%out: f32):
    %c3 = arith.constant 3 : index
    %i = linalg.index 0 : index
    %j = arith.subi %c3, %i : index
    %a = tensor.extract %x[%j] : tensor<4xf32>
    linalg.yield %a : f32
  } -> tensor<4xf32> loc("computed")
  %part = linalg.generic {indexing_maps = [affine_map<(i) -> (i)>], iterator_types = ["parallel"]} outs(%e2 : tensor<2xf32>) {
  ^bb0(%out: f32):
    %i = linalg.index 0 : index
    %a = tensor.extract %x[%i] : tensor<4xf32>
    linalg.yield %a : f32
  } -> tensor<2xf32> loc("part")
  %diagonal = linalg.generic {indexing_maps = [affine_map<(i) -> (i, i)>, affine_map<(i) -> (i)>], iterator_types = ["parallel"]} ins(%z : tensor<4x4xf32>) outs(%e4 : tensor<4xf32>) {
  ^bb0(%a: f32, %out: f32):
    linalg.yield %a : f32
  } -> tensor<4xf32> loc("diagonal")
  %flat = tensor.collapse_shape %y [[0, 1]] : tensor<3x4xf32> into tensor<12xf32>
  %position = linalg.generic {indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> (i)>], iterator_types = ["parallel"]} ins(%flat : tensor<12xf32>) outs(%e12 : tensor<12xf32>) {
  ^bb0(%a: f32, %out: f32):
    %i = linalg.index 0 : index
    %n = arith.index_cast %i : index to i32
    %f = arith.sitofp %n : i32 to f32
    %s = arith.addf %a, %f : f32
    linalg.yield %s : f32
  } -> tensor<12xf32> loc("position")
  %missing:2 = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i)>, affine_map<(i, j) -> (i)>, affine_map<(i, j) -> (j)>], iterator_types = ["parallel", "parallel"]} ins(%x : tensor<4xf32>) outs(%e4, %e2 : tensor<4xf32>, tensor<2xf32>) {
  ^bb0(%a: f32, %out: f32, %other: f32):
    linalg.yield %a, %a : f32, f32
  } -> (tensor<4xf32>, tensor<2xf32>) loc("missing")
  %twofold = linalg.generic {indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> ()>], iterator_types = ["reduction"]} ins(%x : tensor<4xf32>) outs(%start : tensor<f32>) {
  ^bb0(%a: f32, %out: f32):
    %p = arith.mulf %out, %a : f32
    %s = arith.addf %p, %a : f32
    linalg.yield %s : f32
  } -> tensor<f32> loc("twofold")
  return %place, %computed, %part, %diagonal, %position, %missing#0, %missing#1, %twofold : tensor<3xf32>, tensor<4xf32>, tensor<2xf32>, tensor<4xf32>, tensor<12xf32>, tensor<4xf32>, tensor<2xf32>, tensor<f32>
}

// Tensors that are computed of scalars alone tie nothing together: what is cut
// reads pieces of its own, and what is not the whole.
// RUN: baechi-opt %s --split-input-file --baechi-split | FileCheck %s
// RUN: baechi-opt %s --split-input-file --baechi-split --remarks-filter=baechi-split 2>&1 | FileCheck %s --check-prefix=REMARK

// A constant and a scalar that two layers share, each spread over a tensor.
// REMARK: [Passed] split | {{.*}} Function=layers | CopiedUs={{[0-9]+}}, Operations=2,
// REMARK-NOT: Function=layers
// CHECK-LABEL: func.func @layers(
// CHECK-SAME: %[[X:[a-z0-9]+]]: tensor<4x6xf32>, %[[Y:[a-z0-9]+]]: tensor<4x6xf32>, %[[RATE:.*]]: tensor<f32>)
// CHECK: %[[Z:.*]] = arith.constant dense<0.000000e+00> : tensor<4x6xf32>
// CHECK: %[[ALL:.*]] = linalg.generic {{.*}} ins(%[[RATE]] : tensor<f32>) outs(%{{.*}} : tensor<4x6xf32>)
// CHECK: %[[Z0:.*]] = arith.constant dense<0.000000e+00> : tensor<3x6xf32>
// CHECK: %[[M0:.*]] = arith.maximumf %{{.*}}, %[[Z0]]
// CHECK: %[[R0:.*]] = linalg.generic {{.*}} ins(%[[RATE]] : tensor<f32>) outs(%{{.*}} : tensor<3x6xf32>)
// CHECK: %[[R1:.*]] = linalg.generic {{.*}} ins(%[[RATE]] : tensor<f32>) outs(%{{.*}} : tensor<1x6xf32>)
// CHECK: arith.mulf %[[M0]], %[[R0]]
// CHECK: arith.mulf %{{.*}}, %[[R1]] : tensor<1x6xf32>
// CHECK: %[[M:.*]] = arith.maximumf %[[Y]], %[[Z]]
// CHECK: arith.mulf %[[M]], %[[ALL]]
func.func @layers(%x: tensor<4x6xf32> {baechi.split = #baechi.split<dim = 0, sizes = [3, 1]>}, %y: tensor<4x6xf32>, %rate: tensor<f32>) -> (tensor<4x6xf32>, tensor<4x6xf32>) {
  %zero = arith.constant dense<0.0> : tensor<4x6xf32>
  %e = tensor.empty() : tensor<4x6xf32>
  %rates = linalg.generic {indexing_maps = [affine_map<(i, j) -> ()>, affine_map<(i, j) -> (i, j)>], iterator_types = ["parallel", "parallel"]}
      ins(%rate : tensor<f32>) outs(%e : tensor<4x6xf32>) {
  ^bb0(%a: f32, %out: f32):
    linalg.yield %a : f32
  } -> tensor<4x6xf32>
  %m = arith.maximumf %x, %zero : tensor<4x6xf32>
  %r = arith.mulf %m, %rates : tensor<4x6xf32>
  %n = arith.maximumf %y, %zero : tensor<4x6xf32>
  %s = arith.mulf %n, %rates : tensor<4x6xf32>
  return %r, %s : tensor<4x6xf32>, tensor<4x6xf32>
}

// -----

// Positions are no scalars, nor are elements of a tensor: they do tie.
// REMARK: [Passed] split | {{.*}} Function=positions | CopiedUs={{[0-9]+}}, Operations=4,
// CHECK-LABEL: func.func @positions(
// CHECK-COUNT-4: arith.addf {{.*}} : tensor<2xf32>
func.func @positions(%x: tensor<4xf32> {baechi.split = #baechi.split<dim = 0, sizes = [2, 2]>}, %y: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
  %e = tensor.empty() : tensor<4xf32>
  %p = linalg.generic {indexing_maps = [affine_map<(i) -> (i)>], iterator_types = ["parallel"]} outs(%e : tensor<4xf32>) {
  ^bb0(%out: f32):
    %i = linalg.index 0 : index
    %n = arith.index_cast %i : index to i32
    %f = arith.sitofp %n : i32 to f32
    linalg.yield %f : f32
  } -> tensor<4xf32>
  %a = arith.addf %x, %p : tensor<4xf32>
  %b = arith.addf %y, %p : tensor<4xf32>
  return %a, %b : tensor<4xf32>, tensor<4xf32>
}

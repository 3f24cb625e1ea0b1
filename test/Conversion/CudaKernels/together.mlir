// RUN: baechi-opt %s --baechi-lower-cuda-kernels=stage=launches | FileCheck %s

// What needs nothing of each other is one launch, a block of threads for each,
// where that is said: a result may lie in an argument. What needs another one's
// result is a launch of its own all the same.

#id = affine_map<(d0) -> (d0)>

// CHECK-LABEL: func.func private @said(
// CHECK: gpu.launch blocks({{.*}}) in ({{.*}} = %c3
// CHECK-NOT: gpu.launch
// CHECK: return
func.func private @said(%a: tensor<40xf32>, %b: tensor<200xf32>, %c: tensor<8xf32>)
    -> (tensor<40xf32> {baechi.may_alias = array<i64: 0>}, tensor<200xf32> {baechi.may_alias = array<i64: 1>}, tensor<8xf32> {baechi.may_alias = array<i64: 2>})
    attributes {baechi.kernel, baechi.cuda_together} {
  %ea = tensor.empty() : tensor<40xf32>
  %eb = tensor.empty() : tensor<200xf32>
  %ec = tensor.empty() : tensor<8xf32>
  %0 = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel"]} ins(%a : tensor<40xf32>) outs(%ea : tensor<40xf32>) {
  ^bb0(%x: f32, %out: f32):
    %y = arith.addf %x, %x : f32
    linalg.yield %y : f32
  } -> tensor<40xf32>
  %1 = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel"]} ins(%b : tensor<200xf32>) outs(%eb : tensor<200xf32>) {
  ^bb0(%x: f32, %out: f32):
    %y = arith.mulf %x, %x : f32
    linalg.yield %y : f32
  } -> tensor<200xf32>
  %2 = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel"]} ins(%c : tensor<8xf32>) outs(%ec : tensor<8xf32>) {
  ^bb0(%x: f32, %out: f32):
    %y = arith.negf %x : f32
    linalg.yield %y : f32
  } -> tensor<8xf32>
  return %0, %1, %2 : tensor<40xf32>, tensor<200xf32>, tensor<8xf32>
}

// CHECK-LABEL: func.func private @needs(
// CHECK-COUNT-2: gpu.launch blocks
// CHECK-NOT: gpu.launch blocks
// CHECK: return
func.func private @needs(%a: tensor<40xf32>) -> (tensor<40xf32>, tensor<40xf32>) attributes {baechi.kernel, baechi.cuda_together} {
  %ea = tensor.empty() : tensor<40xf32>
  %0 = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel"]} ins(%a : tensor<40xf32>) outs(%ea : tensor<40xf32>) {
  ^bb0(%x: f32, %out: f32):
    %y = arith.addf %x, %x : f32
    linalg.yield %y : f32
  } -> tensor<40xf32>
  %1 = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel"]} ins(%0 : tensor<40xf32>) outs(%ea : tensor<40xf32>) {
  ^bb0(%x: f32, %out: f32):
    %y = arith.mulf %x, %x : f32
    linalg.yield %y : f32
  } -> tensor<40xf32>
  return %0, %1 : tensor<40xf32>, tensor<40xf32>
}

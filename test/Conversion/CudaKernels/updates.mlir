// RUN: baechi-opt %s --baechi-form-kernels --baechi-cuda-products=updates=true | FileCheck %s
// RUN: baechi-opt %s --baechi-form-kernels --baechi-cuda-products | FileCheck %s --check-prefix=APART

// Small updates of what a step returns are one kernel, where the last of them
// is; one that reads what another of them may overwrite begins the next, and
// what is large stays alone.

#id = affine_map<(d0) -> (d0)>
#one = affine_map<(d0) -> ()>

// CHECK-LABEL: func.func @step(
// CHECK-SAME: %[[W:[a-z0-9]+]]: tensor<24xf32>, %[[B:[a-z0-9]+]]: tensor<8xf32>, %[[C:[a-z0-9]+]]: tensor<8xf32>, %[[MEAN:[a-z0-9]+]]: tensor<24xf32>
// CHECK-SAME: %[[LARGE:[a-z0-9]+]]: tensor<300000xf32>, %[[GW:[a-z0-9]+]]: tensor<24xf32>, %[[GB:[a-z0-9]+]]: tensor<8xf32>, %[[GC:[a-z0-9]+]]: tensor<8xf32>
// CHECK-SAME: %[[RATE:[a-z0-9]+]]: tensor<f32>
// CHECK: %[[THREE:.*]]:3 = call @[[JOINED:.*_x3]](%[[W]], %[[GW]], %[[RATE]], %[[B]], %[[GB]], %[[C]], %[[GC]])
// CHECK: %[[ALONE:.*]] = call @{{.*}}300000{{.*}}(%[[LARGE]]
// CHECK: %[[SUM:.*]] = call
// CHECK: %[[TWO:.*]]:2 = call @{{.*}}_x2(%[[MEAN]], %[[W]], %[[GC]], %[[SUM]])
// CHECK: return %[[THREE]]#0, %[[THREE]]#1, %[[THREE]]#2, %[[TWO]]#0, %[[ALONE]], %[[TWO]]#1

// APART-NOT: cuda_together

// CHECK: func.func private @[[JOINED]](
// CHECK-SAME: -> (tensor<24xf32> {baechi.may_alias = array<i64: 0, 1>}, tensor<8xf32> {baechi.may_alias = array<i64: 3, 4>}, tensor<8xf32> {baechi.may_alias = array<i64: 5, 6>})
// CHECK-SAME: attributes {baechi.cuda_together, baechi.kernel}
// CHECK-COUNT-3: linalg.generic

func.func @step(%w: tensor<24xf32>, %b: tensor<8xf32>, %c: tensor<8xf32>, %mean: tensor<24xf32>, %large: tensor<300000xf32>,
                %gw: tensor<24xf32>, %gb: tensor<8xf32>, %gc: tensor<8xf32>, %glarge: tensor<300000xf32>, %rate: tensor<f32>)
    -> (tensor<24xf32>, tensor<8xf32>, tensor<8xf32>, tensor<24xf32>, tensor<300000xf32>, tensor<8xf32>) {
  %e24 = tensor.empty() : tensor<24xf32>
  %e8 = tensor.empty() : tensor<8xf32>
  %elarge = tensor.empty() : tensor<300000xf32>
  %w2 = linalg.generic {indexing_maps = [#id, #id, #one, #id], iterator_types = ["parallel"]}
      ins(%w, %gw, %rate : tensor<24xf32>, tensor<24xf32>, tensor<f32>) outs(%e24 : tensor<24xf32>) {
  ^bb0(%p: f32, %g: f32, %r: f32, %out: f32):
    %s = arith.mulf %g, %r : f32
    %n = arith.subf %p, %s : f32
    linalg.yield %n : f32
  } -> tensor<24xf32>
  %b2 = linalg.generic {indexing_maps = [#id, #id, #one, #id], iterator_types = ["parallel"]}
      ins(%b, %gb, %rate : tensor<8xf32>, tensor<8xf32>, tensor<f32>) outs(%e8 : tensor<8xf32>) {
  ^bb0(%p: f32, %g: f32, %r: f32, %out: f32):
    %s = arith.mulf %g, %r : f32
    %n = arith.subf %p, %s : f32
    linalg.yield %n : f32
  } -> tensor<8xf32>
  %c2 = linalg.generic {indexing_maps = [#id, #id, #one, #id], iterator_types = ["parallel"]}
      ins(%c, %gc, %rate : tensor<8xf32>, tensor<8xf32>, tensor<f32>) outs(%e8 : tensor<8xf32>) {
  ^bb0(%p: f32, %g: f32, %r: f32, %out: f32):
    %s = arith.mulf %g, %r : f32
    %n = arith.subf %p, %s : f32
    linalg.yield %n : f32
  } -> tensor<8xf32>
  // What it reads may be where the new %w is.
  %mean2 = linalg.generic {indexing_maps = [#id, #id, #id], iterator_types = ["parallel"]}
      ins(%mean, %w : tensor<24xf32>, tensor<24xf32>) outs(%e24 : tensor<24xf32>) {
  ^bb0(%p: f32, %g: f32, %out: f32):
    %n = arith.addf %p, %g : f32
    linalg.yield %n : f32
  } -> tensor<24xf32>
  %large2 = linalg.generic {indexing_maps = [#id, #id, #id], iterator_types = ["parallel"]}
      ins(%large, %glarge : tensor<300000xf32>, tensor<300000xf32>) outs(%elarge : tensor<300000xf32>) {
  ^bb0(%p: f32, %g: f32, %out: f32):
    %n = arith.subf %p, %g : f32
    linalg.yield %n : f32
  } -> tensor<300000xf32>
  %sum = tensor.empty() : tensor<f32>
  %zero = arith.constant 0.0 : f32
  %start = linalg.fill ins(%zero : f32) outs(%sum : tensor<f32>) -> tensor<f32>
  %total = linalg.reduce { arith.addf } ins(%gb : tensor<8xf32>) outs(%start : tensor<f32>) dimensions = [0]
  %shares = linalg.generic {indexing_maps = [#id, #one, #id], iterator_types = ["parallel"]}
      ins(%gc, %total : tensor<8xf32>, tensor<f32>) outs(%e8 : tensor<8xf32>) {
  ^bb0(%p: f32, %t: f32, %out: f32):
    %n = arith.divf %p, %t : f32
    linalg.yield %n : f32
  } -> tensor<8xf32>
  return %w2, %b2, %c2, %mean2, %large2, %shares : tensor<24xf32>, tensor<8xf32>, tensor<8xf32>, tensor<24xf32>, tensor<300000xf32>, tensor<8xf32>
}

// Partial results and what they run through.
// RUN: baechi-opt %s --split-input-file --baechi-split=reductions=true | FileCheck %s

// Sums over several steps of a recurrence: each piece adds up its own, and they
// are joined once, at the end. What is no partial sum joins the first piece.
// CHECK-LABEL: func.func @recurrence(
// CHECK-COUNT-4: linalg.matmul
// CHECK-NOT: baechi.partials
// CHECK: %[[A0:.*]] = arith.addf %{{.*}}, %{{.*}} : tensor<3x2xf32>
// CHECK: %[[A1:.*]] = arith.addf %{{.*}}, %{{.*}} : tensor<3x2xf32>
// CHECK-NOT: baechi.partials
// CHECK: %[[B0:.*]] = arith.addf %[[A0]], %arg3 : tensor<3x2xf32>
// CHECK: %[[SUM:.*]] = linalg.generic {{.*}} ins(%[[B0]], %[[A1]] : {{.*}} attrs = {baechi.partials}
// CHECK-NOT: baechi.partials
// CHECK: return %[[SUM]]
func.func @recurrence(%x: tensor<3x4xf32> {baechi.split = #baechi.split<dim = 1, sizes = [2, 2]>}, %y: tensor<4x2xf32>, %z: tensor<4x2xf32>, %decay: tensor<3x2xf32>) -> tensor<3x2xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<3x2xf32>
  %start = linalg.fill ins(%zero : f32) outs(%e : tensor<3x2xf32>) -> tensor<3x2xf32>
  %p = linalg.matmul ins(%x, %y : tensor<3x4xf32>, tensor<4x2xf32>) outs(%start : tensor<3x2xf32>) -> tensor<3x2xf32>
  %q = linalg.matmul ins(%x, %z : tensor<3x4xf32>, tensor<4x2xf32>) outs(%start : tensor<3x2xf32>) -> tensor<3x2xf32>
  %s = arith.addf %p, %q : tensor<3x2xf32>
  %r = arith.addf %s, %decay : tensor<3x2xf32>
  return %r : tensor<3x2xf32>
}

// -----

// A sum and a maximum of the pieces: each is joined its own way, and the join
// of both is partial in the sum alone.
// CHECK-LABEL: func.func @kinds(
// CHECK-DAG: %[[M0:.*]] = linalg.reduce ins(%[[X0:.*]] : tensor<2x3xf32>) outs(%arg2 : {{.*}} dimensions = [0]
// CHECK-DAG: %[[S0:.*]] = linalg.reduce ins(%[[X0]] : tensor<2x3xf32>) outs(%arg1 : {{.*}} dimensions = [0]
// CHECK: %[[M:.*]] = linalg.generic {{.*}} ins(%[[M0]], %{{.*}} attrs = {baechi.partials}
// CHECK: arith.maximumf
// CHECK: %[[A0:.*]] = arith.addf %[[M]], %[[S0]] : tensor<3xf32>
// CHECK: %[[SUM:.*]] = linalg.generic {{.*}} ins(%[[A0]], %{{.*}} attrs = {baechi.partials}
// CHECK: arith.addf
// CHECK: return %[[SUM]]
func.func @kinds(%x: tensor<4x3xf32> {baechi.split = #baechi.split<dim = 0, sizes = [2, 2]>}, %start: tensor<3xf32>, %least: tensor<3xf32>) -> tensor<3xf32> {
  %sum = linalg.reduce ins(%x : tensor<4x3xf32>) outs(%start : tensor<3xf32>) dimensions = [0]
    (%a: f32, %b: f32) {
      %r = arith.addf %a, %b : f32
      linalg.yield %r : f32
    }
  %max = linalg.reduce ins(%x : tensor<4x3xf32>) outs(%least : tensor<3xf32>) dimensions = [0]
    (%a: f32, %b: f32) {
      %r = arith.maximumf %a, %b : f32
      linalg.yield %r : f32
    }
  %both = arith.addf %max, %sum : tensor<3xf32>
  return %both : tensor<3xf32>
}

// -----

// Sums of other pieces are whole to each other.
// CHECK-LABEL: func.func @numbers(
// CHECK-COUNT-2: linalg.reduce { arith.addf } ins(%{{.*}} : tensor<3x3xf32>)
// CHECK-COUNT-3: linalg.reduce { arith.addf } ins(%{{.*}} : tensor<2x3xf32>)
// CHECK-COUNT-2: attrs = {baechi.partials}
// CHECK: %[[BOTH:.*]] = arith.addf %{{.*}}, %{{.*}} : tensor<3xf32>
// CHECK: linalg.generic {{.*}} ins(%[[BOTH]], %{{.*}} attrs = {baechi.partials}
func.func @numbers(%x: tensor<6x3xf32> {baechi.split = #baechi.split<dim = 0, sizes = [3, 3]>},
                   %y: tensor<6x3xf32> {baechi.split = #baechi.split<dim = 0, sizes = [2, 2, 2]>}, %start: tensor<3xf32>) -> tensor<3xf32> {
  %zero = arith.constant dense<0.0> : tensor<3xf32>
  %p = linalg.reduce { arith.addf } ins(%x : tensor<6x3xf32>) outs(%zero : tensor<3xf32>) dimensions = [0]
  %q = linalg.reduce { arith.addf } ins(%y : tensor<6x3xf32>) outs(%start : tensor<3xf32>) dimensions = [0]
  %both = arith.addf %p, %q : tensor<3xf32>
  return %both : tensor<3xf32>
}

// -----

// A reduction over a dimension of one element, which JAX makes of the gradient
// of what it has broadcast, is done with each partial sum: those of all time
// steps are joined once.
// CHECK-LABEL: func.func @unit(
// CHECK-COUNT-4: linalg.reduce { arith.addf } ins(%{{.*}} : tensor<2x3xf32>)
// CHECK-NOT: baechi.partials
// CHECK: %[[A0:.*]] = arith.addf %{{.*}}, %{{.*}} : tensor<3xf32>
// CHECK: %[[A1:.*]] = arith.addf %{{.*}}, %{{.*}} : tensor<3xf32>
// CHECK: %[[SUM:.*]] = linalg.generic {{.*}} ins(%[[A0]], %[[A1]] : {{.*}} attrs = {baechi.partials}
// CHECK: return %[[SUM]]
func.func @unit(%x: tensor<4x3xf32> {baechi.split = #baechi.split<dim = 0, sizes = [2, 2]>}) -> tensor<3xf32> {
  %y = arith.mulf %x, %x : tensor<4x3xf32>
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<3xf32>
  %start = linalg.fill ins(%zero : f32) outs(%e : tensor<3xf32>) -> tensor<3xf32>
  %none = arith.constant dense<0.0> : tensor<3xf32>
  %p = linalg.reduce { arith.addf } ins(%x : tensor<4x3xf32>) outs(%start : tensor<3xf32>) dimensions = [0]
  %q = linalg.reduce { arith.addf } ins(%y : tensor<4x3xf32>) outs(%start : tensor<3xf32>) dimensions = [0]
  %p1 = tensor.expand_shape %p [[0, 1]] output_shape [1, 3] : tensor<3xf32> into tensor<1x3xf32>
  %q1 = tensor.expand_shape %q [[0, 1]] output_shape [1, 3] : tensor<3xf32> into tensor<1x3xf32>
  %p2 = linalg.reduce { arith.addf } ins(%p1 : tensor<1x3xf32>) outs(%start : tensor<3xf32>) dimensions = [0]
  %q2 = linalg.reduce { arith.addf } ins(%q1 : tensor<1x3xf32>) outs(%none : tensor<3xf32>) dimensions = [0]
  %both = arith.addf %p2, %q2 : tensor<3xf32>
  return %both : tensor<3xf32>
}

// -----

// One that starts from another number adds it once, to the whole.
// CHECK-LABEL: func.func @started(
// CHECK: %[[SUM:.*]] = linalg.generic {{.*}} attrs = {baechi.partials}
// CHECK: linalg.reduce { arith.addf } ins(%[[SUM]] : tensor<1x3xf32>) outs(%arg1
func.func @started(%x: tensor<4x3xf32> {baechi.split = #baechi.split<dim = 0, sizes = [2, 2]>}, %bias: tensor<3xf32>) -> tensor<3xf32> {
  %zero = arith.constant dense<0.0> : tensor<3xf32>
  %p = linalg.reduce { arith.addf } ins(%x : tensor<4x3xf32>) outs(%zero : tensor<3xf32>) dimensions = [0]
  %row = tensor.expand_shape %p [[0, 1]] output_shape [1, 3] : tensor<3xf32> into tensor<1x3xf32>
  %sum = linalg.reduce { arith.addf } ins(%row : tensor<1x3xf32>) outs(%bias : tensor<3xf32>) dimensions = [0]
  return %sum : tensor<3xf32>
}

// Over links small sums that wait for as many others travel together, each of
// the same additions as alone; with merge-moments a sum that is linear in what
// waits for another is made of sums that do not wait.
// RUN: baechi-opt %s --split-input-file --baechi-split="reductions=true merge-moments=true" | FileCheck %s
// RUN: baechi-opt %s --split-input-file --baechi-split=reductions=true | FileCheck %s --check-prefix=BITS
// RUN: baechi-opt %s --split-input-file --baechi-split="reductions=true join-branches=true" | FileCheck %s --check-prefix=BRANCHES

#links = #baechi.machine<devices = [<"a", kind = "host", memory = 1000000>, <"b", kind = "host", memory = 1000000>], link_default = <"" -> "", latency_ns = 1000, bytes_per_us = 1000>, link_model = sequential>

// Rows of what a piece sends: the sums of x, of x c, and what is made of both
// later: x again, and c.
// CHECK-DAG: #[[SAME:.*]] = affine_map<(d0) -> (d0)>
// CHECK-DAG: #[[ROW0:.*]] = affine_map<(d0) -> (0, d0)>
// CHECK-DAG: #[[ROW1:.*]] = affine_map<(d0) -> (1, d0)>
// CHECK-DAG: #[[ROW2:.*]] = affine_map<(d0) -> (2, d0)>
// CHECK-DAG: #[[ROW3:.*]] = affine_map<(d0) -> (3, d0)>
// CHECK-LABEL: func.func @gradient
// CHECK: %[[C0:.*]] = math.tanh
// CHECK: %[[C1:.*]] = math.tanh
// CHECK: %[[A0:.*]] = linalg.reduce {{.*}}tensor<3x16xf32>
// CHECK: %[[A1:.*]] = linalg.reduce {{.*}}tensor<5x16xf32>
// CHECK: %[[B0:.*]] = linalg.reduce {{.*}}tensor<3x16xf32>
// CHECK: %[[T0:.*]]:2 = linalg.generic {{.*}}"reduction", "parallel"{{.*}}%[[C0]]
// CHECK: arith.negf
// CHECK: arith.negf
// CHECK: %[[SENT0:.*]] = linalg.generic {{.*}} ins(%[[A0]], %[[B0]], %[[T0]]#0, %[[T0]]#1 : {{.*}} outs({{.*}} : tensor<4x16xf32>)
// CHECK: %[[B1:.*]] = linalg.reduce {{.*}}tensor<5x16xf32>
// CHECK: %[[T1:.*]]:2 = linalg.generic {{.*}}"reduction", "parallel"{{.*}}%[[C1]]
// CHECK: %[[SENT1:.*]] = linalg.generic {{.*}} ins(%[[A1]], %[[B1]], %[[T1]]#0, %[[T1]]#1 : {{.*}} outs({{.*}} : tensor<4x16xf32>)
// CHECK-COUNT-2: linalg.generic {indexing_maps = [#[[ROW0]], #[[ROW0]], #[[SAME]]]{{.*}} ins(%[[SENT0]], %[[SENT1]] :
// CHECK-COUNT-2: linalg.generic {indexing_maps = [#[[ROW1]], #[[ROW1]], #[[SAME]]]{{.*}} ins(%[[SENT0]], %[[SENT1]] :
// CHECK: linalg.generic {indexing_maps = [#[[ROW2]], #[[ROW2]], #[[SAME]]]{{.*}} ins(%[[SENT0]], %[[SENT1]] :
// CHECK: return

// Three sums of each piece; the third waits for the second.
// BITS-LABEL: func.func @gradient
// BITS-COUNT-2: linalg.generic {{.*}} outs({{.*}} : tensor<2x16xf32>)
// BITS-NOT: linalg.generic {{.*}} outs({{.*}} : tensor<2x16xf32>)
// BITS: return
module attributes {baechi.machine = #links} {
  func.func @gradient(%x: tensor<8x16xf32> {baechi.split = #baechi.split<dim = 0, sizes = [3, 5]>}, %y: tensor<8x16xf32>) -> (tensor<16xf32>, tensor<8x16xf32>) {
    %zero = arith.constant 0.0 : f32
    %e = tensor.empty() : tensor<16xf32>
    %z = linalg.fill ins(%zero : f32) outs(%e : tensor<16xf32>) -> tensor<16xf32>
    %f = tensor.empty() : tensor<8x16xf32>
    %c = math.tanh %y : tensor<8x16xf32>
    %a = linalg.reduce { arith.addf } ins(%x : tensor<8x16xf32>) outs(%z : tensor<16xf32>) dimensions = [0]
    %bias = math.exp %a : tensor<16xf32>
    %k = linalg.broadcast ins(%a : tensor<16xf32>) outs(%f : tensor<8x16xf32>) dimensions = [0]
    %p = arith.mulf %x, %c : tensor<8x16xf32>
    %b = linalg.reduce { arith.addf } ins(%p : tensor<8x16xf32>) outs(%z : tensor<16xf32>) dimensions = [0]
    %v = math.tanh %b : tensor<16xf32>
    %w = linalg.broadcast ins(%v : tensor<16xf32>) outs(%f : tensor<8x16xf32>) dimensions = [0]
    %t = arith.mulf %w, %c : tensor<8x16xf32>
    %u = arith.addf %x, %t : tensor<8x16xf32>
    %n = arith.negf %u : tensor<8x16xf32>
    %s = linalg.reduce { arith.addf } ins(%n : tensor<8x16xf32>) outs(%z : tensor<16xf32>) dimensions = [0]
    %m = linalg.broadcast ins(%s : tensor<16xf32>) outs(%f : tensor<8x16xf32>) dimensions = [0]
    %q = arith.subf %u, %m : tensor<8x16xf32>
    %r = arith.mulf %q, %k : tensor<8x16xf32>
    return %bias, %r : tensor<16xf32>, tensor<8x16xf32>
  }
}

// -----

// Of other tensors, and other lengths: together only as branches.
#links = #baechi.machine<devices = [<"a", kind = "host", memory = 1000000>, <"b", kind = "host", memory = 1000000>], link_default = <"" -> "", latency_ns = 1000, bytes_per_us = 1000>, link_model = sequential>

// BRANCHES-DAG: #[[FIRST:.*]] = affine_map<(d0) -> (d0 + 16)>
// BRANCHES-DAG: #[[BEHIND:.*]] = affine_map<(d0) -> (d0 + 32)>
// BRANCHES-LABEL: func.func @branches
// BRANCHES: %[[X0:.*]] = linalg.reduce {{.*}}tensor<4x16xf32>
// BRANCHES: %[[X1:.*]] = linalg.reduce {{.*}}tensor<4x16xf32>
// BRANCHES: %[[Y0:.*]] = linalg.reduce {{.*}}tensor<4x8xf32>
// BRANCHES: %[[BOTH0:.*]] = linalg.generic {{.*}} outs({{.*}} : tensor<40xf32>)
// BRANCHES: tensor.extract %[[X0]]
// BRANCHES: tensor.extract %[[Y0]]
// BRANCHES: %[[Y1:.*]] = linalg.reduce {{.*}}tensor<4x8xf32>
// BRANCHES: %[[BOTH1:.*]] = linalg.generic {{.*}} outs({{.*}} : tensor<40xf32>)
// BRANCHES: linalg.generic {{.*}}#[[FIRST]], #[[FIRST]]{{.*}} ins(%[[BOTH0]], %[[BOTH1]] :
// BRANCHES: linalg.generic {{.*}}#[[BEHIND]], #[[BEHIND]]{{.*}} ins(%[[BOTH0]], %[[BOTH1]] :
// BITS-LABEL: func.func @branches
// BITS-NOT: tensor<40xf32>
// BITS: return
module attributes {baechi.machine = #links} {
  func.func @branches(%x: tensor<8x16xf32> {baechi.split = #baechi.split<dim = 0, sizes = [4, 4]>}, %y: tensor<8x8xf32> {baechi.split = #baechi.split<dim = 0, sizes = [4, 4]>}) -> (tensor<8x16xf32>, tensor<8x8xf32>) {
    %zero = arith.constant 0.0 : f32
    %e = tensor.empty() : tensor<16xf32>
    %z = linalg.fill ins(%zero : f32) outs(%e : tensor<16xf32>) -> tensor<16xf32>
    %e8 = tensor.empty() : tensor<8xf32>
    %z8 = linalg.fill ins(%zero : f32) outs(%e8 : tensor<8xf32>) -> tensor<8xf32>
    %f = tensor.empty() : tensor<8x16xf32>
    %f8 = tensor.empty() : tensor<8x8xf32>
    %a = linalg.reduce { arith.addf } ins(%x : tensor<8x16xf32>) outs(%z : tensor<16xf32>) dimensions = [0]
    %m = linalg.broadcast ins(%a : tensor<16xf32>) outs(%f : tensor<8x16xf32>) dimensions = [0]
    %r = arith.subf %x, %m : tensor<8x16xf32>
    %b = linalg.reduce { arith.addf } ins(%y : tensor<8x8xf32>) outs(%z8 : tensor<8xf32>) dimensions = [0]
    %n = linalg.broadcast ins(%b : tensor<8xf32>) outs(%f8 : tensor<8x8xf32>) dimensions = [0]
    %s = arith.subf %y, %n : tensor<8x8xf32>
    return %r, %s : tensor<8x16xf32>, tensor<8x8xf32>
  }
}

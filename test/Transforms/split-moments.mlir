// Over links the sums of a mean and of its variance are one message: each piece
// takes off its own mean, and pairs are merged.
// RUN: baechi-opt %s --split-input-file --baechi-split="reductions=true merge-moments=true" | FileCheck %s
// RUN: baechi-opt %s --split-input-file --baechi-split=reductions=true | FileCheck %s --check-prefix=APART

#links = #baechi.machine<devices = [<"a", kind = "host", memory = 1000000>, <"b", kind = "host", memory = 1000000>], link_default = <"" -> "", latency_ns = 1000, bytes_per_us = 1000>, link_model = sequential>

// CHECK: #[[HALF0:.*]] = affine_map<(d0) -> (0, d0)>
// CHECK: #[[HALF1:.*]] = affine_map<(d0) -> (1, d0)>
// CHECK-LABEL: func.func @statistics
// CHECK: %[[X0:.*]] = tensor.extract_slice %arg0[0, 0] [3, 16]
// CHECK: %[[X1:.*]] = tensor.extract_slice %arg0[3, 0] [5, 16]
// CHECK: %[[S0:.*]] = linalg.reduce {{.*}} ins(%[[X0]] :
// CHECK: %[[S1:.*]] = linalg.reduce {{.*}} ins(%[[X1]] :
// The mean of three rows, what they lack of it, and what rounding left:
// CHECK: %[[M0:.*]] = linalg.generic {{.*}} ins(%[[S0]] :
// CHECK: arith.constant 3.0
// CHECK: arith.divf
// CHECK: %[[Q0:.*]]:2 = linalg.generic {{.*}}"reduction", "parallel"{{.*}} ins(%[[X0]], %[[M0]] :
// CHECK: arith.subf
// CHECK: arith.mulf
// CHECK: arith.addf
// CHECK: arith.addf
// CHECK: %[[R0:.*]]:2 = linalg.generic {{.*}} ins(%[[M0]], %[[Q0]]#0, %[[Q0]]#1 :
// Infinite means have nothing left to put right, and equal ones are not apart.
// CHECK: ^bb0(%[[MEAN:.*]]: f32, %{{.*}}: f32, %[[LEFT:.*]]: f32, %{{.*}}: f32, %{{.*}}: f32):
// CHECK: %[[NONE:.*]] = arith.subf %[[MEAN]], %[[MEAN]]
// CHECK: %[[FINITE:.*]] = arith.cmpf oeq, %[[NONE]]
// CHECK: arith.select %[[FINITE]], %[[LEFT]]
// CHECK: %[[M1:.*]] = linalg.generic {{.*}} ins(%[[S1]] :
// CHECK: arith.constant 5.0
// CHECK: %[[Q1:.*]]:2 = linalg.generic {{.*}}"reduction", "parallel"{{.*}} ins(%[[X1]], %[[M1]] :
// CHECK: %[[R1:.*]]:2 = linalg.generic {{.*}} ins(%[[M1]], %[[Q1]]#0, %[[Q1]]#1 :
// CHECK: %[[SENT0:.*]] = linalg.generic {{.*}} ins(%[[R0]]#0, %[[R0]]#1 : {{.*}} outs({{.*}} : tensor<2x16xf32>)
// CHECK: %[[SENT1:.*]] = linalg.generic {{.*}} ins(%[[R1]]#0, %[[R1]]#1 : {{.*}} outs({{.*}} : tensor<2x16xf32>)
// Both halves of both; 3 * 5 / 8 of the squared difference of the means.
// CHECK: %[[BOTH0:.*]]:2 = linalg.generic {indexing_maps = [#[[HALF0]], #[[HALF0]], #[[HALF1]], #[[HALF1]], {{.*}} ins(%[[SENT0]], %[[SENT1]], %[[SENT0]], %[[SENT1]] : {{.*}} attrs = {baechi.partials}
// CHECK: %[[EQUAL:.*]] = arith.cmpf oeq
// CHECK: arith.select %[[EQUAL]], %{{.*}}, %{{.*}}
// CHECK: arith.constant 1.875
// CHECK: %[[BOTH1:.*]]:2 = linalg.generic {{.*}} ins(%[[SENT0]], %[[SENT1]], %[[SENT0]], %[[SENT1]] : {{.*}} attrs = {baechi.partials}
// CHECK: arith.divf %[[BOTH0]]#0
// CHECK: arith.divf %[[BOTH1]]#0
// CHECK: linalg.broadcast ins(%[[BOTH0]]#1
// CHECK: linalg.broadcast ins(%[[BOTH1]]#1
// CHECK-NOT: linalg.reduce

// APART-LABEL: func.func @statistics
// APART-COUNT-4: linalg.reduce
module attributes {baechi.machine = #links} {
  func.func @statistics(%x: tensor<8x16xf32> {baechi.split = #baechi.split<dim = 0, sizes = [3, 5]>}) -> tensor<8x16xf32> {
    %zero = arith.constant 0.0 : f32
    %n = arith.constant dense<8.0> : tensor<16xf32>
    %e = tensor.empty() : tensor<16xf32>
    %z = linalg.fill ins(%zero : f32) outs(%e : tensor<16xf32>) -> tensor<16xf32>
    %s = linalg.reduce { arith.addf } ins(%x : tensor<8x16xf32>) outs(%z : tensor<16xf32>) dimensions = [0]
    %m = arith.divf %s, %n : tensor<16xf32>
    %f = tensor.empty() : tensor<8x16xf32>
    %b = linalg.broadcast ins(%m : tensor<16xf32>) outs(%f : tensor<8x16xf32>) dimensions = [0]
    %c = arith.subf %x, %b : tensor<8x16xf32>
    %q = arith.mulf %c, %c : tensor<8x16xf32>
    %v = linalg.reduce { arith.addf } ins(%q : tensor<8x16xf32>) outs(%z : tensor<16xf32>) dimensions = [0]
    %w = linalg.broadcast ins(%v : tensor<16xf32>) outs(%f : tensor<8x16xf32>) dimensions = [0]
    %r = arith.divf %c, %w : tensor<8x16xf32>
    return %r : tensor<8x16xf32>
  }
}

// -----

// What is taken off is no mean of these: the sums stay what they are.
#links = #baechi.machine<devices = [<"a", kind = "host", memory = 1000000>, <"b", kind = "host", memory = 1000000>], link_default = <"" -> "", latency_ns = 1000, bytes_per_us = 1000>, link_model = sequential>

// CHECK-LABEL: func.func @no_mean
// CHECK-COUNT-4: linalg.reduce
module attributes {baechi.machine = #links} {
  func.func @no_mean(%x: tensor<8x16xf32> {baechi.split = #baechi.split<dim = 0, sizes = [4, 4]>}) -> tensor<16xf32> {
    %zero = arith.constant 0.0 : f32
    %n = arith.constant dense<7.0> : tensor<16xf32>
    %e = tensor.empty() : tensor<16xf32>
    %z = linalg.fill ins(%zero : f32) outs(%e : tensor<16xf32>) -> tensor<16xf32>
    %s = linalg.reduce { arith.addf } ins(%x : tensor<8x16xf32>) outs(%z : tensor<16xf32>) dimensions = [0]
    %m = arith.divf %s, %n : tensor<16xf32>
    %f = tensor.empty() : tensor<8x16xf32>
    %b = linalg.broadcast ins(%m : tensor<16xf32>) outs(%f : tensor<8x16xf32>) dimensions = [0]
    %c = arith.subf %x, %b : tensor<8x16xf32>
    %q = arith.mulf %c, %c : tensor<8x16xf32>
    %v = linalg.reduce { arith.addf } ins(%q : tensor<8x16xf32>) outs(%z : tensor<16xf32>) dimensions = [0]
    return %v : tensor<16xf32>
  }
}

// -----

// Square matrices: a row's mean is taken off the columns.
#links = #baechi.machine<devices = [<"a", kind = "host", memory = 1000000>, <"b", kind = "host", memory = 1000000>], link_default = <"" -> "", latency_ns = 1000, bytes_per_us = 1000>, link_model = sequential>

// CHECK-LABEL: func.func @across
// CHECK-NOT: tensor<2x8xf32>
// CHECK: return
module attributes {baechi.machine = #links} {
  func.func @across(%x: tensor<8x8xf32> {baechi.split = #baechi.split<dim = 0, sizes = [4, 4]>}) -> tensor<8xf32> {
    %zero = arith.constant 0.0 : f32
    %n = arith.constant dense<8.0> : tensor<8xf32>
    %e = tensor.empty() : tensor<8xf32>
    %z = linalg.fill ins(%zero : f32) outs(%e : tensor<8xf32>) -> tensor<8xf32>
    %s = linalg.reduce { arith.addf } ins(%x : tensor<8x8xf32>) outs(%z : tensor<8xf32>) dimensions = [0]
    %m = arith.divf %s, %n : tensor<8xf32>
    %f = tensor.empty() : tensor<8x8xf32>
    %b = linalg.broadcast ins(%m : tensor<8xf32>) outs(%f : tensor<8x8xf32>) dimensions = [1]
    %c = arith.subf %x, %b : tensor<8x8xf32>
    %q = arith.mulf %c, %c : tensor<8x8xf32>
    %v = linalg.reduce { arith.addf } ins(%q : tensor<8x8xf32>) outs(%z : tensor<8xf32>) dimensions = [0]
    return %v : tensor<8xf32>
  }
}

// -----

// Where devices read each other's memory nothing is sent.
#shared = #baechi.machine<devices = [<"a", kind = "host", memory = 1000000>, <"b", kind = "host", memory = 1000000>], link_default = <"" -> "", latency_ns = 1000, bytes_per_us = 1000, lends>, link_model = sequential>

// CHECK-LABEL: func.func @lent
// CHECK-COUNT-4: linalg.reduce
module attributes {baechi.machine = #shared} {
  func.func @lent(%x: tensor<8x16xf32> {baechi.split = #baechi.split<dim = 0, sizes = [4, 4]>}) -> tensor<16xf32> {
    %zero = arith.constant 0.0 : f32
    %n = arith.constant dense<8.0> : tensor<16xf32>
    %e = tensor.empty() : tensor<16xf32>
    %z = linalg.fill ins(%zero : f32) outs(%e : tensor<16xf32>) -> tensor<16xf32>
    %s = linalg.reduce { arith.addf } ins(%x : tensor<8x16xf32>) outs(%z : tensor<16xf32>) dimensions = [0]
    %m = arith.divf %s, %n : tensor<16xf32>
    %f = tensor.empty() : tensor<8x16xf32>
    %b = linalg.broadcast ins(%m : tensor<16xf32>) outs(%f : tensor<8x16xf32>) dimensions = [0]
    %c = arith.subf %x, %b : tensor<8x16xf32>
    %q = arith.mulf %c, %c : tensor<8x16xf32>
    %v = linalg.reduce { arith.addf } ins(%q : tensor<8x16xf32>) outs(%z : tensor<16xf32>) dimensions = [0]
    return %v : tensor<16xf32>
  }
}

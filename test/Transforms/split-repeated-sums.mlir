// What all pieces wait for, a sum over them and what follows of it, is computed
// for each of them where that is as quickly sent as any message; in pairs, in
// the same order for all.
// RUN: baechi-opt %s --split-input-file --baechi-split=reductions=true | FileCheck %s

#links = #baechi.machine<devices = [<"a", kind = "host", memory = 1000000>, <"b", kind = "host", memory = 1000000>], link_default = <"" -> "", latency_ns = 1000, bytes_per_us = 1000>, link_model = sequential>

// CHECK-LABEL: func.func @centred
// CHECK: %[[S0:.*]] = linalg.reduce {{.*}} dimensions = [0]
// CHECK: %[[S1:.*]] = linalg.reduce {{.*}} dimensions = [0]
// CHECK: %[[S2:.*]] = linalg.reduce {{.*}} dimensions = [0]
// CHECK: %[[S3:.*]] = linalg.reduce {{.*}} dimensions = [0]
// CHECK: %[[P0:.*]] = linalg.generic {{.*}} ins(%[[S0]], %[[S1]] :
// CHECK: %[[P1:.*]] = linalg.generic {{.*}} ins(%[[S0]], %[[S1]] :
// CHECK: %[[P2:.*]] = linalg.generic {{.*}} ins(%[[S2]], %[[S3]] :
// CHECK: %[[P3:.*]] = linalg.generic {{.*}} ins(%[[S2]], %[[S3]] :
// CHECK: %[[T0:.*]] = linalg.generic {{.*}} ins(%[[P0]], %[[P2]] :
// CHECK: %[[T1:.*]] = linalg.generic {{.*}} ins(%[[P1]], %[[P3]] :
// CHECK: %[[T2:.*]] = linalg.generic {{.*}} ins(%[[P0]], %[[P2]] :
// CHECK: %[[T3:.*]] = linalg.generic {{.*}} ins(%[[P1]], %[[P3]] :
// The whole's own, which nothing reads:
// CHECK: math.tanh
// CHECK: %[[M0:.*]] = math.tanh %[[T0]]
// CHECK: %[[M1:.*]] = math.tanh %[[T1]]
// CHECK: %[[M2:.*]] = math.tanh %[[T2]]
// CHECK: %[[M3:.*]] = math.tanh %[[T3]]
// CHECK: linalg.broadcast ins(%[[M0]] :
// CHECK: linalg.broadcast ins(%[[M1]] :
// CHECK: linalg.broadcast ins(%[[M2]] :
// CHECK: linalg.broadcast ins(%[[M3]] :
module attributes {baechi.machine = #links} {
  func.func @centred(%x: tensor<8x16xf32> {baechi.split = #baechi.split<dim = 0, sizes = [2, 2, 2, 2]>}) -> tensor<8x16xf32> {
    %zero = arith.constant 0.0 : f32
    %e = tensor.empty() : tensor<16xf32>
    %z = linalg.fill ins(%zero : f32) outs(%e : tensor<16xf32>) -> tensor<16xf32>
    %s = linalg.reduce { arith.addf } ins(%x : tensor<8x16xf32>) outs(%z : tensor<16xf32>) dimensions = [0]
    %m = math.tanh %s : tensor<16xf32>
    %f = tensor.empty() : tensor<8x16xf32>
    %b = linalg.broadcast ins(%m : tensor<16xf32>) outs(%f : tensor<8x16xf32>) dimensions = [0]
    %c = arith.subf %x, %b : tensor<8x16xf32>
    return %c : tensor<8x16xf32>
  }
}

// -----

// Where devices read each other's memory there is one.
#shared = #baechi.machine<devices = [<"a", kind = "host", memory = 1000000>, <"b", kind = "host", memory = 1000000>], link_default = <"" -> "", latency_ns = 1000, bytes_per_us = 1000, lends>, link_model = sequential>

// CHECK-LABEL: func.func @lent
// CHECK: math.tanh
// CHECK-NOT: math.tanh
module attributes {baechi.machine = #shared} {
  func.func @lent(%x: tensor<8x16xf32> {baechi.split = #baechi.split<dim = 0, sizes = [2, 2, 2, 2]>}) -> tensor<8x16xf32> {
    %zero = arith.constant 0.0 : f32
    %e = tensor.empty() : tensor<16xf32>
    %z = linalg.fill ins(%zero : f32) outs(%e : tensor<16xf32>) -> tensor<16xf32>
    %s = linalg.reduce { arith.addf } ins(%x : tensor<8x16xf32>) outs(%z : tensor<16xf32>) dimensions = [0]
    %m = math.tanh %s : tensor<16xf32>
    %f = tensor.empty() : tensor<8x16xf32>
    %b = linalg.broadcast ins(%m : tensor<16xf32>) outs(%f : tensor<8x16xf32>) dimensions = [0]
    %c = arith.subf %x, %b : tensor<8x16xf32>
    return %c : tensor<8x16xf32>
  }
}

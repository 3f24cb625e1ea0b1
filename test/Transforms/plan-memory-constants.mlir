// A GPU's constants lie in its arena, behind the arguments, and count against
// its memory; a host device reads them where the program has them.

// RUN: baechi-opt %s --baechi-plan-memory --baechi-verify-partitioned | FileCheck %s
// RUN: sed 's/kind = "cuda", memory = 512/kind = "cuda", memory = 192/' %s | not baechi-opt --baechi-plan-memory 2>&1 | FileCheck %s --check-prefix=SMALL

// SMALL: error: device 'gpu' has 192 bytes (192 B), the plan needs 320 (320 B): 192 of parameters, inputs and constants, at most 128 of other tensors at once

module attributes {baechi.machine = #baechi.machine<devices = [<"cpu", kind = "host", memory = 512>, <"gpu", kind = "cuda", memory = 512>], link_default = <"" -> "", latency_ns = 1, bytes_per_us = 1000>, link_model = parallel>} {
  func.func private @step(tensor<16xf32>, tensor<16xf32>) -> (tensor<16xf32>, tensor<16xf32>)
  module @cpu attributes {baechi.device = "cpu"} {
    func.func @step(%x: tensor<16xf32> {baechi.argument = 0 : i64}) -> (tensor<16xf32> {baechi.result = 0 : i64}) {
      %c = arith.constant dense<1.0> : tensor<16xf32>
      %0 = arith.addf %x, %c : tensor<16xf32>
      return %0 : tensor<16xf32>
    }
  }
  module @gpu attributes {baechi.device = "gpu"} {
    func.func @step(%y: tensor<16xf32> {baechi.argument = 1 : i64}) -> (tensor<16xf32> {baechi.result = 1 : i64}) {
      %c = arith.constant dense<1.0> : tensor<16xf32>
      %d = arith.constant dense<2.0> : tensor<8xf32>
      %0 = arith.addf %y, %c : tensor<16xf32>
      %1 = arith.addf %d, %d : tensor<8xf32>
      return %0 : tensor<16xf32>
    }
  }
}

// CHECK: module @cpu attributes {baechi.arena = #baechi.arena<bytes = 128, resident = 64,
// CHECK: arith.constant dense<1.000000e+00>
// CHECK: module @gpu attributes {baechi.arena = #baechi.arena<bytes = {{[0-9]+}}, resident = 192,
// CHECK: arith.constant {baechi.offset = array<i64: 64>} dense<1.000000e+00>
// CHECK: arith.constant {baechi.offset = array<i64: 128>} dense<2.000000e+00>

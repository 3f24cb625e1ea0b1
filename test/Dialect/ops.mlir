// Every operation, type and attribute prints what it parsed.
// RUN: baechi-opt %s | baechi-opt | FileCheck %s
// RUN: baechi-opt %s --mlir-print-op-generic | baechi-opt | FileCheck %s
// RUN: baechi-opt %s --emit-bytecode | baechi-opt | FileCheck %s

// CHECK: module attributes {baechi.machine = #baechi.machine<devices = [
// CHECK-SAME: <"gpu0", kind = "cuda", memory = 8589934592>, <"gpu1", kind = "cuda", memory = 1024>]
// CHECK-SAME: links = [<"gpu0" -> "gpu1", latency_ns = 134000, bytes_per_us = 5701>]
// CHECK-SAME: link_default = <"" -> "", latency_ns = 7, bytes_per_us = 9>
// CHECK-SAME: link_model = sequential, staged_through = "cpu",
// CHECK-SAME: runtime = <step_ns = 9000, operator_ns = 150, wake_ns = 12000, shared_percent = 104, alone_ns = 4000, cores = 1>>}
module attributes {baechi.machine = #baechi.machine<
    devices = [<"gpu0", kind = "cuda", memory = 8589934592>,
               <"gpu1", kind = "cuda", memory = 1024>],
    links = [<"gpu0" -> "gpu1", latency_ns = 134000, bytes_per_us = 5701>],
    link_default = <"" -> "", latency_ns = 7, bytes_per_us = 9>,
    link_model = sequential, staged_through = "cpu",
    runtime = <step_ns = 9000, operator_ns = 150, wake_ns = 12000,
               shared_percent = 104, alone_ns = 4000, cores = 1>>} {
  // CHECK-LABEL: func.func @step
  // CHECK-SAME: baechi.init = {high = 5.000000e-02 : f64, kind = "uniform", low = -5.000000e-02 : f64, seed = 3 : i64}
  // CHECK-SAME: baechi.name = "w"
  // CHECK-SAME: baechi.updated_by = 0 : i64
  // CHECK-SAME: baechi.init = {high = 9 : i64, kind = "randint", low = 0 : i64, seed = 1 : i64}
  // CHECK-SAME: baechi.init = {kind = "constant", value = 1 : i64}
  // CHECK-SAME: -> (tensor<4xf32> {baechi.name = "w"})
  // CHECK-SAME: baechi.certificate = #baechi.placement_certificate<placer = "msct", winner = "metf", makespan = 10, lower_bound = 8, bound = "path", single_device = 0, operators = 4, groups = 2, peaks = [64, 96]>
  func.func @step(
      %w: tensor<4xf32> {baechi.name = "w", baechi.updated_by = 0 : i64,
          baechi.init = {kind = "uniform", low = -0.05, high = 0.05, seed = 3}},
      %i: tensor<4xi32> {baechi.init = {kind = "randint", low = 0, high = 9, seed = 1}},
      %n: tensor<i32> {baechi.init = {kind = "constant", value = 1}})
      -> (tensor<4xf32> {baechi.name = "w"})
      attributes {baechi.certificate = #baechi.placement_certificate<
          placer = "msct", winner = "metf", makespan = 10, lower_bound = 8,
          bound = "path", single_device = 0, operators = 4, groups = 2,
          peaks = [64, 96]>} {
    // CHECK: call @scale
    // CHECK-SAME: baechi.cost = #baechi.cost<time_ns = {cuda = 41000, host = 910000}, scratch = 16>
    // CHECK-SAME: baechi.device = "gpu1"
    // CHECK-SAME: baechi.group = "layer0"
    // CHECK-SAME: baechi.pin = "gpu1"
    // CHECK-SAME: baechi.sends = [#baechi.transfer<result = 0, from = "gpu1", to = "gpu0", start = 1, end = 2>]
    // CHECK-SAME: baechi.start = 12 : i64
    %0 = call @scale(%w) {
        baechi.cost = #baechi.cost<time_ns = {cuda = 41000, host = 910000}, scratch = 16>,
        baechi.device = "gpu1", baechi.group = "layer0", baechi.pin = "gpu1",
        baechi.sends = [#baechi.transfer<result = 0, from = "gpu1", to = "gpu0", start = 1, end = 2>],
        baechi.start = 12 : i64} : (tensor<4xf32>) -> tensor<4xf32>
    return %0 : tensor<4xf32>
  }

  // CHECK: func.func private @scale(tensor<4xf32>) -> (tensor<4xf32> {baechi.may_alias = array<i64: 0>})
  // CHECK-SAME: baechi.cuda_product = #baechi.cuda_product<math = "tf32", workspace = 64, algorithm = [1, 2, 3, 4, 5, 6, 7, 8]>, baechi.implementation = "generated", baechi.kernel, baechi.kernel_scratch = 64 : i64
  func.func private @scale(tensor<4xf32>)
      -> (tensor<4xf32> {baechi.may_alias = array<i64: 0>})
      attributes {baechi.cuda_product = #baechi.cuda_product<math = "tf32", workspace = 64, algorithm = [1, 2, 3, 4, 5, 6, 7, 8]>,
                  baechi.kernel, baechi.implementation = "generated",
                  baechi.kernel_scratch = 64 : i64}

  // CHECK: module @gpu1 attributes {baechi.arena = #baechi.arena<bytes = 64, resident = 16, live = 48, limit = 1024, promised = 64>, baechi.device = "gpu1"}
  module @gpu1 attributes {
      baechi.device = "gpu1",
      baechi.arena = #baechi.arena<bytes = 64, resident = 16, live = 48, limit = 1024, promised = 64>} {
    // CHECK: func.func @step(%[[W:.*]]: tensor<4xf32> {baechi.argument = 0 : i64, baechi.offset = 0 : i64}) -> (tensor<4xf32> {baechi.result = 0 : i64})
    func.func @step(%w: tensor<4xf32> {baechi.argument = 0 : i64, baechi.offset = 0 : i64})
        -> (tensor<4xf32> {baechi.result = 0 : i64}) {
      // CHECK: %[[F:.*]] = baechi.recv from "gpu0" queue 0 seq 3 start 5 end 6 {baechi.offset = 16 : i64} : !baechi.future<tensor<4xf32>>
      %f = baechi.recv from "gpu0" queue 0 seq 3 start 5 end 6 {baechi.offset = 16 : i64} : !baechi.future<tensor<4xf32>>
      // CHECK: %[[X:.*]] = baechi.await %[[F]] : !baechi.future<tensor<4xf32>>
      %x = baechi.await %f : !baechi.future<tensor<4xf32>>
      // CHECK: %[[T:.*]] = baechi.send %[[X]] to "gpu0" queue 0 seq 7 : tensor<4xf32>
      %t = baechi.send %x to "gpu0" queue 0 seq 7 : tensor<4xf32>
      // CHECK: baechi.await %[[T]] : !baechi.token
      baechi.await %t : !baechi.token
      // CHECK: baechi.copy %[[X]] into %[[W]] : tensor<4xf32>
      baechi.copy %x into %w : tensor<4xf32>
      return %x : tensor<4xf32>
    }
  }
}

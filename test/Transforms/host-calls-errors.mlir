// Host calls run on host devices, and where somebody computes them.
// RUN: split-file %s %t
// RUN: not baechi-opt %t/gpu.mlir --baechi-lower=target=cuda 2>&1 | FileCheck %s --check-prefix=GPU
// RUN: not baechi-run %t/alone.mlir --machine=host:1 2>&1 | FileCheck %s --check-prefix=ALONE

//--- gpu.mlir
// GPU: is a host call, which GPUs do not run; place it on a host device
#machine = #baechi.machine<devices = [<"gpu", kind = "cuda", memory = 1000>], link_default = <"" -> "", latency_ns = 1, bytes_per_us = 1000>, link_model = parallel>
module attributes {baechi.machine = #machine} {
  func.func private @step(tensor<16xf32>) -> tensor<16xf32>
  module @gpu attributes {baechi.arena = #baechi.arena<bytes = 128, resident = 64, live = 128, limit = 1000>, baechi.device = "gpu"} {
    func.func private @ask(tensor<16xf32>) -> tensor<16xf32> attributes {baechi.host_call = {effects = "pure", ns = 1 : i64}, baechi.kernel}
    func.func @step(%x: tensor<16xf32> {baechi.argument = 0 : i64, baechi.offset = 0 : i64}) -> (tensor<16xf32> {baechi.result = 0 : i64}) {
      %0 = call @ask(%x) {baechi.offset = array<i64: 64>} : (tensor<16xf32>) -> tensor<16xf32>
      return %0 : tensor<16xf32>
    }
  }
}

//--- alone.mlir
// ALONE: @ask is a host call, which a host program computes: emit a library (--emit=so) and give it the function, or run the step by baechi.jit
func.func private @ask(tensor<4xf32>) -> tensor<4xf32> attributes {baechi.host_call = {effects = "pure", ns = 1 : i64}}
func.func @step(%x: tensor<4xf32>) -> tensor<4xf32> {
  %0 = call @ask(%x) : (tensor<4xf32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}

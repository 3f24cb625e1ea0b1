// A GPU's step function calls the kernels' host code for GPUs; a host device's
// beside it the host's. Constants are copied to their place in the arena, which
// --baechi-plan-memory gives them.

// RUN: baechi-opt %s --baechi-lower="target=cuda prefix=p" | FileCheck %s
// RUN: not baechi-opt %s --baechi-lower 2>&1 | FileCheck %s --check-prefix=HOST

// HOST: error: device 'gpu' is a GPU; lower with target=cuda, for GPUs and host devices

#machine = #baechi.machine<devices = [<"cpu", kind = "host", memory = 1000>, <"gpu", kind = "cuda", memory = 1000>], link_default = <"" -> "", latency_ns = 1, bytes_per_us = 1000>, link_model = parallel>
module attributes {baechi.machine = #machine} {
  func.func private @step(tensor<16xf32>, tensor<16xf32>) -> (tensor<16xf32>, tensor<16xf32>)
  module @cpu attributes {baechi.arena = #baechi.arena<bytes = 128, resident = 64, live = 128, limit = 1000>, baechi.device = "cpu"} {
    func.func private @exp(tensor<16xf32>) -> tensor<16xf32> attributes {baechi.kernel}
    func.func @step(%x: tensor<16xf32> {baechi.argument = 0 : i64, baechi.offset = 0 : i64}) -> (tensor<16xf32> {baechi.result = 0 : i64}) {
      %0 = call @exp(%x) {baechi.offset = array<i64: 64>} : (tensor<16xf32>) -> tensor<16xf32>
      return %0 : tensor<16xf32>
    }
  }
  module @gpu attributes {baechi.arena = #baechi.arena<bytes = 192, resident = 128, live = 192, limit = 1000>, baechi.device = "gpu"} {
    func.func private @add(tensor<16xf32>, tensor<16xf32>) -> tensor<16xf32> attributes {baechi.kernel}
    func.func @step(%y: tensor<16xf32> {baechi.argument = 1 : i64, baechi.offset = 0 : i64}) -> (tensor<16xf32> {baechi.result = 1 : i64}) {
      %c = arith.constant {baechi.offset = array<i64: 128>} dense<1.0> : tensor<16xf32>
      %0 = call @add(%y, %c) {baechi.offset = array<i64: 64>} : (tensor<16xf32>, tensor<16xf32>) -> tensor<16xf32>
      baechi.copy %0 into %y : tensor<16xf32>
      return %0 : tensor<16xf32>
    }
  }
}

// RUN: sed 's/{baechi.offset = array<i64: 128>} //' %s | not baechi-opt --baechi-lower="target=cuda prefix=p" 2>&1 | FileCheck %s --check-prefix=NOWHERE
// NOWHERE: error: {{.*}}reads a value of type 'tensor<16xf32>' that has no place in memory; run --baechi-plan-memory

// CHECK-LABEL: llvm.func @p_step_cpu
// CHECK: llvm.call @baechi.kernel.exp(

// CHECK-LABEL: llvm.func @p_step_gpu(
// CHECK-SAME: %[[CONTEXT:.*]]: !llvm.ptr, %[[ARENA:.*]]: !llvm.ptr
// CHECK: %[[OFFSET:.*]] = llvm.mlir.constant(128 : i64)
// CHECK: %[[PLACE:.*]] = llvm.getelementptr inbounds %[[ARENA]][%[[OFFSET]]]
// CHECK: %[[DATA:.*]] = llvm.mlir.addressof @p_constant_gpu_{{[0-9]+}}
// CHECK: %[[BYTES:.*]] = llvm.mlir.constant(64 : i64)
// CHECK: llvm.call @baechi_cuda_constant(%[[PLACE]], %[[DATA]], %[[BYTES]])
// CHECK: llvm.call @baechi_operator_begin(%[[CONTEXT]]
// CHECK: llvm.call @add__cuda(%[[ARENA]], %{{.*}}, %{{.*}}, %[[ARENA]])
// CHECK: llvm.call @baechi_operator_end(%[[CONTEXT]]
// CHECK: llvm.call @baechi_cuda_copy(%[[ARENA]], %{{.*}}, %{{.*}}) : (!llvm.ptr, !llvm.ptr, i64)

// RUN: baechi-opt %s --baechi-lower="target=host prefix=p" | FileCheck %s

// A planned program becomes one function a device that calls kernels and the
// runtime, and a string that says what it is. The nested modules are gone.
// CHECK: llvm.mlir.global external constant @p_program("{\22arguments\22:[{\22bytes\22:64,
// CHECK-SAME: \22format\22:\22baechi-program\22
// CHECK-SAME: \22function\22:\22step\22
// CHECK-SAME: \00") {addr_space = 0 : i32}
// CHECK-NOT: module @
// CHECK-NOT: func.func private @step
module attributes {baechi.machine = #baechi.machine<devices = [<"a", kind = "host", memory = 8000000000>, <"b", kind = "host", memory = 1000>], link_model = parallel>} {
  func.func private @step(tensor<16xf32> {baechi.updated_by = 0 : i64}) -> tensor<16xf32>
  module @a attributes {baechi.device = "a", baechi.arena = #baechi.arena<bytes = 5000000256, resident = 64, live = 192, limit = 8000000000>} {
    // The kernel's code is another pass's work.
    func.func private @kernel(tensor<16xf32>) -> tensor<16xf32> attributes {baechi.kernel}
    // CHECK-DAG: llvm.mlir.global internal constant @p_constant_a_1(dense<2.000000e+00> : tensor<16xf32>) {{.*}}alignment = 64
    // CHECK-LABEL: llvm.func @p_step_a(
    // CHECK-SAME: %[[C:.*]]: !llvm.ptr, %[[ARENA:.*]]: !llvm.ptr) -> i32
    func.func @step(%x: tensor<16xf32> {baechi.argument = 0 : i64, baechi.offset = 0 : i64, baechi.updated_by = 0 : i64}) -> (tensor<16xf32> {baechi.result = 0 : i64}) {
      %c = arith.constant dense<2.0> : tensor<16xf32>
      // An operator: its operands, its results, its scratch; offset 0 is the
      // arena itself, and offsets may exceed 2 GiB.
      // CHECK: %[[O:.*]] = llvm.mlir.constant(5000000000 : i64) : i64
      // CHECK: %[[P:.*]] = llvm.getelementptr inbounds %[[ARENA]][%[[O]]]
      // CHECK: %[[S:.*]] = llvm.getelementptr inbounds %[[ARENA]]
      // CHECK: llvm.call @baechi_operator_begin(%[[C]], %{{.*}})
      // CHECK: llvm.call @baechi.kernel.kernel(%[[ARENA]], %[[P]], %[[S]])
      // CHECK: llvm.call @baechi_operator_end(%[[C]], %{{.*}})
      %0 = func.call @kernel(%x) {baechi.offset = array<i64: 5000000000, 192>} : (tensor<16xf32>) -> tensor<16xf32>
      // A message; whatever the runtime reports but 0 ends the step.
      // CHECK: %[[STATUS:.*]] = llvm.call @baechi_send(%[[C]], %{{.*}}, %{{.*}}, %{{.*}}) : (!llvm.ptr, i32, i32, !llvm.ptr) -> i32
      // CHECK: %[[BAD:.*]] = llvm.icmp "ne" %[[STATUS]]
      // CHECK: llvm.cond_br %[[BAD]], ^[[LEAVE:bb[0-9]+]](%[[STATUS]] : i32), ^{{bb[0-9]+}}
      %t = baechi.send %0 to "b" queue 0 seq 0 : tensor<16xf32>
      // A kernel without scratch gets the arena in its place; constants lie
      // outside it.
      // CHECK: %[[ADDRESS:.*]] = llvm.mlir.addressof @p_constant_a_1
      // CHECK: llvm.call @baechi.kernel.kernel(%[[ADDRESS]], %{{.*}}, %[[ARENA]])
      %1 = func.call @kernel(%c) {baechi.offset = array<i64: 128>} : (tensor<16xf32>) -> tensor<16xf32>
      // CHECK: llvm.call @baechi_await_send
      baechi.await %t : !baechi.token
      // CHECK: %[[BYTES:.*]] = llvm.mlir.constant(64 : i64)
      // CHECK: "llvm.intr.memcpy"(%[[ARENA]], %{{.*}}, %[[BYTES]])
      baechi.copy %1 into %x : tensor<16xf32>
      // CHECK: ^[[LEAVE]](%[[RESULT:.*]]: i32):
      // CHECK-NEXT: llvm.return %[[RESULT]] : i32
      return %1 : tensor<16xf32>
    }
  }
  module @b attributes {baechi.device = "b", baechi.arena = #baechi.arena<bytes = 64, resident = 0, live = 64, limit = 1000>} {
    // CHECK-LABEL: llvm.func @p_step_b(
    func.func @step() {
      // CHECK: llvm.call @baechi_recv
      %0 = baechi.recv from "a" queue 0 seq 0 {baechi.offset = array<i64: 0>} : !baechi.future<tensor<16xf32>>
      // CHECK: llvm.call @baechi_await_recv
      %1 = baechi.await %0 : !baechi.future<tensor<16xf32>>
      return
    }
  }
}

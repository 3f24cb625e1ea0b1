// RUN: baechi-opt %s --baechi-lower="target=host prefix=p" | FileCheck %s
// RUN: baechi-opt %s --baechi-lower="target=host prefix=p" | FileCheck %s --check-prefix=MANIFEST

// An argument that the step only reads is read where the runtime says, which
// is asked once; the others lie in their places: what is small, is updated, is
// a result, lies where something is written (a result, scratch, a copy), goes
// to a device of another kind, or is a copy of another device's.
// MANIFEST-COUNT-2: \22lendable\22:true
// MANIFEST-NOT: lendable
module attributes {baechi.machine = #baechi.machine<devices = [<"a", kind = "host", memory = 1000000>, <"b", kind = "host", memory = 1000000>, <"p", kind = "pool", memory = 1000000>], link_model = parallel>} {
  func.func private @step(
    tensor<1024xf32> {baechi.name = "read"}, tensor<1008xf32> {baechi.name = "small"},
    tensor<1024xf32> {baechi.name = "updated", baechi.updated_by = 0 : i64},
    tensor<1024xf32> {baechi.name = "returned"},
    tensor<1024xf32> {baechi.name = "overwritten"}, tensor<1024xf32> {baechi.name = "scratch"},
    tensor<1024xf32> {baechi.name = "target"}, tensor<1024xf32> {baechi.name = "pooled"},
    tensor<1024xf32> {baechi.name = "mirrored"}, tensor<1024xf32> {baechi.name = "unused"}) -> (tensor<1024xf32>, tensor<1024xf32>)
  module @a attributes {baechi.device = "a", baechi.arena = #baechi.arena<bytes = 65536, resident = 36928, live = 65536, limit = 1000000>} {
    func.func private @use(tensor<1024xf32>) -> tensor<16xf32> attributes {baechi.kernel}
    func.func private @few(tensor<1008xf32>) -> tensor<16xf32> attributes {baechi.kernel}
    func.func private @part(tensor<512xf32>) -> tensor<16xf32> attributes {baechi.kernel}
    // CHECK-LABEL: llvm.func @p_step_a(
    // CHECK-SAME: %[[C:.*]]: !llvm.ptr, %[[ARENA:.*]]: !llvm.ptr) -> i32
    func.func @step(
        %read: tensor<1024xf32> {baechi.argument = 0 : i64, baechi.offset = 4096 : i64},
        %small: tensor<1008xf32> {baechi.argument = 1 : i64, baechi.offset = 0 : i64},
        %updated: tensor<1024xf32> {baechi.argument = 2 : i64, baechi.offset = 8192 : i64, baechi.updated_by = 0 : i64},
        %returned: tensor<1024xf32> {baechi.argument = 3 : i64, baechi.offset = 12288 : i64},
        %overwritten: tensor<1024xf32> {baechi.argument = 4 : i64, baechi.offset = 16384 : i64},
        %scratch: tensor<1024xf32> {baechi.argument = 5 : i64, baechi.offset = 20480 : i64},
        %target: tensor<1024xf32> {baechi.argument = 6 : i64, baechi.offset = 24576 : i64},
        %pooled: tensor<1024xf32> {baechi.argument = 7 : i64, baechi.offset = 28672 : i64},
        %mirrored: tensor<1024xf32> {baechi.argument = 8 : i64, baechi.offset = 32768 : i64},
        %unused: tensor<1024xf32> {baechi.argument = 9 : i64, baechi.offset = 36864 : i64})
        -> (tensor<1024xf32> {baechi.result = 0 : i64}, tensor<1024xf32> {baechi.result = 1 : i64}) {
      // CHECK: %[[O:.*]] = llvm.mlir.constant(4096 : i64) : i64
      // CHECK: %[[PLACE:.*]] = llvm.getelementptr inbounds %[[ARENA]][%[[O]]]
      // CHECK: %[[N:.*]] = llvm.mlir.constant(0 : i32) : i32
      // CHECK: %[[THERE:.*]] = llvm.call @baechi_argument(%[[C]], %[[N]], %[[PLACE]]) : (!llvm.ptr, i32, !llvm.ptr) -> !llvm.ptr
      // CHECK: llvm.call @baechi.kernel.use(%[[THERE]],
      %0 = func.call @use(%read) {baechi.offset = array<i64: 49152>} : (tensor<1024xf32>) -> tensor<16xf32>
      // It was asked for already; a view lies behind its start.
      // CHECK-NOT: llvm.call @baechi_argument
      // CHECK: %[[H:.*]] = llvm.mlir.constant(2048 : i64) : i64
      // CHECK: %[[HALF:.*]] = llvm.getelementptr inbounds %[[THERE]][%[[H]]]
      // CHECK: llvm.call @baechi.kernel.part(%[[HALF]],
      %half = tensor.extract_slice %read[512] [512] [1] {baechi.view} : tensor<1024xf32> to tensor<512xf32>
      %1 = func.call @part(%half) {baechi.offset = array<i64: 49216>} : (tensor<512xf32>) -> tensor<16xf32>
      // CHECK: llvm.call @baechi_send(%[[C]], %{{.*}}, %{{.*}}, %[[THERE]])
      // CHECK-NOT: llvm.call @baechi_argument
      %t = baechi.send %read to "b" queue 0 seq 0 lent : tensor<1024xf32>
      %u = baechi.send %pooled to "p" queue 1 seq 0 : tensor<1024xf32>
      %2 = func.call @use(%updated) {baechi.offset = array<i64: 49280>} : (tensor<1024xf32>) -> tensor<16xf32>
      %3 = func.call @use(%returned) {baechi.offset = array<i64: 49344>} : (tensor<1024xf32>) -> tensor<16xf32>
      %4 = func.call @use(%overwritten) {baechi.offset = array<i64: 49408>} : (tensor<1024xf32>) -> tensor<16xf32>
      // The last byte of one and the first of the next.
      %5 = func.call @part(%half) {baechi.offset = array<i64: 20416>} : (tensor<512xf32>) -> tensor<16xf32>
      %6 = func.call @use(%scratch) {baechi.offset = array<i64: 49472, 24512>, baechi.cost = #baechi.cost<time_ns = {host = 1}, scratch = 64>} : (tensor<1024xf32>) -> tensor<16xf32>
      %7 = func.call @use(%target) {baechi.offset = array<i64: 49536>} : (tensor<1024xf32>) -> tensor<16xf32>
      baechi.copy %returned into %target : tensor<1024xf32>
      %8 = func.call @use(%mirrored) {baechi.offset = array<i64: 49600>} : (tensor<1024xf32>) -> tensor<16xf32>
      %9 = func.call @few(%small) {baechi.offset = array<i64: 49664>} : (tensor<1008xf32>) -> tensor<16xf32>
      baechi.await %t : !baechi.token
      baechi.await %u : !baechi.token
      return %updated, %returned : tensor<1024xf32>, tensor<1024xf32>
    }
  }
  module @b attributes {baechi.device = "b", baechi.arena = #baechi.arena<bytes = 4096, resident = 4096, live = 4096, limit = 1000000>} {
    // CHECK-LABEL: llvm.func @p_step_b(
    // CHECK-NOT: llvm.call @baechi_argument
    // CHECK: llvm.return
    func.func @step(%mirrored: tensor<1024xf32> {baechi.argument = 8 : i64, baechi.offset = 0 : i64, baechi.mirror}) {
      %0 = baechi.recv from "a" queue 0 seq 0 lent : !baechi.future<tensor<1024xf32>>
      %1 = baechi.await %0 : !baechi.future<tensor<1024xf32>>
      baechi.give_back %0 : !baechi.future<tensor<1024xf32>>
      return
    }
  }
  module @p attributes {baechi.device = "p", baechi.arena = #baechi.arena<bytes = 4096, resident = 0, live = 4096, limit = 1000000>} {
    func.func @step() {
      %0 = baechi.recv from "a" queue 1 seq 0 {baechi.offset = array<i64: 0>} : !baechi.future<tensor<1024xf32>>
      %1 = baechi.await %0 : !baechi.future<tensor<1024xf32>>
      return
    }
  }
}

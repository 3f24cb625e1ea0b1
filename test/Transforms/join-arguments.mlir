// Parameters in slices are read where they lie, and slices of gradients are sent
// from where they lie.
// RUN: baechi-opt %s --baechi-carry-parameters --baechi-verify-partitioned | FileCheck %s
// RUN: baechi-opt %s --baechi-carry-parameters --baechi-plan-memory --baechi-verify-partitioned | FileCheck %s --check-prefix=PLAN

// A parameter in two slices: each device reads the whole where its own slice and
// the copy of the other one lie, which are behind each other. Both have their
// next values when the last has read the whole.

#machine = #baechi.machine<devices = [<"a", kind = "host", memory = 100000>, <"b", kind = "host", memory = 100000>], link_model = parallel>
module attributes {baechi.exchange = "fifo", baechi.machine = #machine} {
  func.func private @last(%g: tensor<128xf32>) -> tensor<64xf32> attributes {baechi.kernel} {
    %0 = tensor.extract_slice %g[64] [64] [1] : tensor<128xf32> to tensor<64xf32>
    return %0 : tensor<64xf32>
  }
  // CHECK-LABEL: module @a
  // CHECK: func.func @step(%[[W:.*]]: tensor<64xf32> {baechi.argument = 0 : i64, baechi.updated_by = 0 : i64}, %[[V:.*]]: tensor<64xf32> {baechi.argument = 1 : i64, baechi.mirror})
  // CHECK: baechi.await_carried queue 1 seq 0
  // CHECK: %[[P:.*]] = call @join(%[[W]], %[[V]]) {baechi.joined}
  // CHECK: %[[D:.*]] = call @wide(%[[P]])
  // CHECK-NEXT: %[[G:.*]] = tensor.extract_slice %[[D]][64] [64] [1] {baechi.view}
  // CHECK: baechi.recv from "b" queue 1 seq 0 {baechi.carried = 1 : i64}
  // CHECK: call @next(%[[W]], %[[G]])
  // PLAN-LABEL: module @a
  // PLAN: resident = 512
  // PLAN: baechi.argument = 0 : i64, baechi.offset = 0 : i64
  // PLAN-SAME: baechi.mirror, baechi.offset = 256 : i64
  // PLAN: call @join({{.*}}) {baechi.joined, baechi.offset = array<i64: 0>}
  module @a attributes {baechi.device = "a"} {
    func.func private @join(tensor<64xf32>, tensor<64xf32>) -> (tensor<128xf32> {baechi.parts = array<i64: 0, 256>}) attributes {baechi.kernel}
    func.func private @wide(tensor<128xf32>) -> tensor<128xf32> attributes {baechi.kernel}
    func.func private @last(tensor<128xf32>) -> tensor<64xf32> attributes {baechi.kernel}
    func.func private @next(tensor<64xf32>, tensor<64xf32>) -> (tensor<64xf32> {baechi.may_alias = array<i64: 0>}) attributes {baechi.kernel}
    func.func @step(%w: tensor<64xf32> {baechi.argument = 0 : i64, baechi.updated_by = 0 : i64}) -> (tensor<64xf32> {baechi.result = 0 : i64}) {
      %t0 = baechi.send %w to "b" queue 0 seq 0 : tensor<64xf32>
      %f0 = baechi.recv from "b" queue 1 seq 0 : !baechi.future<tensor<64xf32>>
      %v = baechi.await %f0 : !baechi.future<tensor<64xf32>>
      %p = call @join(%w, %v) : (tensor<64xf32>, tensor<64xf32>) -> tensor<128xf32>
      %d = call @wide(%p) : (tensor<128xf32>) -> tensor<128xf32>
      %g = call @last(%d) : (tensor<128xf32>) -> tensor<64xf32>
      %n = call @next(%w, %g) : (tensor<64xf32>, tensor<64xf32>) -> tensor<64xf32>
      baechi.await %t0 : !baechi.token
      return %n : tensor<64xf32>
    }
  }
  // The whole is still read when the next value is computed: it is a copy.
  // CHECK-LABEL: module @b
  // CHECK: call @join({{.*}}) : (tensor<64xf32>, tensor<64xf32>)
  // PLAN-LABEL: module @b
  // PLAN: call @join({{.*}}) {baechi.offset = array<i64: 768>}
  module @b attributes {baechi.device = "b"} {
    func.func private @join(tensor<64xf32>, tensor<64xf32>) -> (tensor<128xf32> {baechi.parts = array<i64: 0, 256>}) attributes {baechi.kernel}
    func.func private @use(tensor<128xf32>) -> tensor<64xf32> attributes {baechi.kernel}
    func.func private @next(tensor<64xf32>, tensor<64xf32>) -> (tensor<64xf32> {baechi.may_alias = array<i64: 0>}) attributes {baechi.kernel}
    func.func @step(%v: tensor<64xf32> {baechi.argument = 1 : i64, baechi.updated_by = 0 : i64}, %x: tensor<64xf32> {baechi.argument = 2 : i64}) -> (tensor<64xf32> {baechi.result = 1 : i64}, tensor<64xf32> {baechi.result = 2 : i64}) {
      %f0 = baechi.recv from "a" queue 0 seq 0 : !baechi.future<tensor<64xf32>>
      %t0 = baechi.send %v to "a" queue 1 seq 0 : tensor<64xf32>
      %w = baechi.await %f0 : !baechi.future<tensor<64xf32>>
      %p = call @join(%w, %v) : (tensor<64xf32>, tensor<64xf32>) -> tensor<128xf32>
      %n = call @next(%v, %x) : (tensor<64xf32>, tensor<64xf32>) -> tensor<64xf32>
      %g = call @use(%p) : (tensor<128xf32>) -> tensor<64xf32>
      baechi.await %t0 : !baechi.token
      return %n, %g : tensor<64xf32>, tensor<64xf32>
    }
  }
}

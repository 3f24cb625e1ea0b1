// RUN: baechi-opt %s --split-input-file --baechi-carry-parameters --baechi-verify-partitioned | FileCheck %s
// RUN: baechi-opt %s --split-input-file --baechi-carry-parameters --baechi-plan-memory --baechi-verify-partitioned | FileCheck %s --check-prefix=PLAN

// Two owners. Gradients go before parameters, and of each first what the next
// step uses first. There is room for gradients from the beginning.

#machine = #baechi.machine<devices = [<"a", kind = "host", memory = 100000>, <"b", kind = "host", memory = 100000>], link_model = parallel>
module attributes {baechi.exchange = "p3", baechi.machine = #machine, baechi.slice_bytes = 1024 : i64} {
  func.func private @next(tensor<64xf32>, tensor<64xf32>) -> (tensor<64xf32> {baechi.may_alias = array<i64: 0>}) attributes {baechi.kernel}
  func.func private @use(tensor<64xf32>, tensor<64xf32>) -> tensor<64xf32> attributes {baechi.kernel}
  func.func private @step(tensor<64xf32> {baechi.device = "a"}, tensor<64xf32> {baechi.device = "b"}, tensor<64xf32> {baechi.device = "b"}) -> (tensor<64xf32> {baechi.device = "a"}, tensor<64xf32> {baechi.device = "b"})
  // CHECK-LABEL: module @a
  // CHECK: func.func @step(%[[W:.*]]: tensor<64xf32> {baechi.argument = 0 : i64, baechi.updated_by = 0 : i64}, %[[V:.*]]: tensor<64xf32> {baechi.argument = 1 : i64, baechi.mirror})
  // CHECK-NEXT: baechi.recv from "b" queue 1 seq 0 :
  // CHECK: call @use(%[[W]], %[[W]])
  // CHECK: baechi.await_carried queue 1 seq 1
  // CHECK: %[[G:.*]] = call @use(%{{.*}}, %[[V]])
  // CHECK: baechi.recv from "b" queue 1 seq 1 {baechi.carried = 1 : i64}
  // CHECK: baechi.send %[[G]] to "b" queue 0 seq 0 {baechi.priority = 1 : i64}
  // CHECK: baechi.await_carried queue 0 seq 1
  // CHECK: %[[NEXT:.*]] = call @next(%[[W]],
  // CHECK: baechi.send %[[NEXT]] to "b" queue 0 seq 1 {baechi.carried = 0 : i64, baechi.priority = 2 : i64}
  // PLAN-LABEL: module @a
  // PLAN: resident = 512
  // PLAN: baechi.recv from "b" queue 1 seq 1 {baechi.carried = 1 : i64, baechi.offset = array<i64: 256>}
  // PLAN: call @next({{.*}}baechi.offset = array<i64: 0>
  module @a attributes {baechi.device = "a"} {
    func.func private @next(tensor<64xf32>, tensor<64xf32>) -> (tensor<64xf32> {baechi.may_alias = array<i64: 0>}) attributes {baechi.kernel}
    func.func private @use(tensor<64xf32>, tensor<64xf32>) -> tensor<64xf32> attributes {baechi.kernel}
    func.func @step(%w: tensor<64xf32> {baechi.argument = 0 : i64, baechi.updated_by = 0 : i64}) -> (tensor<64xf32> {baechi.result = 0 : i64}) {
      %t0 = baechi.send %w to "b" queue 0 seq 0 : tensor<64xf32>
      %f0 = baechi.recv from "b" queue 1 seq 0 : !baechi.future<tensor<64xf32>>
      %0 = call @use(%w, %w) : (tensor<64xf32>, tensor<64xf32>) -> tensor<64xf32>
      %v = baechi.await %f0 : !baechi.future<tensor<64xf32>>
      %1 = call @use(%0, %v) : (tensor<64xf32>, tensor<64xf32>) -> tensor<64xf32>
      %t1 = baechi.send %1 to "b" queue 0 seq 1 : tensor<64xf32>
      %f1 = baechi.recv from "b" queue 1 seq 1 : !baechi.future<tensor<64xf32>>
      %g = baechi.await %f1 : !baechi.future<tensor<64xf32>>
      %2 = call @next(%w, %g) : (tensor<64xf32>, tensor<64xf32>) -> tensor<64xf32>
      baechi.await %t0 : !baechi.token
      baechi.await %t1 : !baechi.token
      return %2 : tensor<64xf32>
    }
  }
  module @b attributes {baechi.device = "b"} {
    func.func private @next(tensor<64xf32>, tensor<64xf32>) -> (tensor<64xf32> {baechi.may_alias = array<i64: 0>}) attributes {baechi.kernel}
    func.func private @use(tensor<64xf32>, tensor<64xf32>) -> tensor<64xf32> attributes {baechi.kernel}
    func.func @step(%v: tensor<64xf32> {baechi.argument = 1 : i64, baechi.updated_by = 0 : i64}, %x: tensor<64xf32> {baechi.argument = 2 : i64}) -> (tensor<64xf32> {baechi.result = 1 : i64}) {
      %f0 = baechi.recv from "a" queue 0 seq 0 : !baechi.future<tensor<64xf32>>
      %t0 = baechi.send %v to "a" queue 1 seq 0 : tensor<64xf32>
      %w = baechi.await %f0 : !baechi.future<tensor<64xf32>>
      %0 = call @use(%w, %x) : (tensor<64xf32>, tensor<64xf32>) -> tensor<64xf32>
      %1 = call @use(%0, %v) : (tensor<64xf32>, tensor<64xf32>) -> tensor<64xf32>
      %t1 = baechi.send %1 to "a" queue 1 seq 1 : tensor<64xf32>
      %f1 = baechi.recv from "a" queue 0 seq 1 : !baechi.future<tensor<64xf32>>
      %g = baechi.await %f1 : !baechi.future<tensor<64xf32>>
      %2 = call @next(%v, %g) : (tensor<64xf32>, tensor<64xf32>) -> tensor<64xf32>
      baechi.await %t0 : !baechi.token
      baechi.await %t1 : !baechi.token
      return %2 : tensor<64xf32>
    }
  }
}

// -----

// A value that is not computed in its argument's place, and one that is passed
// on, are sent at the step's start; without an exchange all are.

#machine = #baechi.machine<devices = [<"a", kind = "host", memory = 100000>, <"b", kind = "host", memory = 100000>], link_model = parallel>
module attributes {baechi.exchange = "fifo", baechi.machine = #machine} {
  // CHECK-LABEL: module @a
  // CHECK-NOT: carried
  // CHECK: baechi.send %arg0 to "b" queue 0 seq 0
  module @a attributes {baechi.device = "a"} {
    func.func private @other(tensor<64xf32>) -> tensor<64xf32> attributes {baechi.kernel}
    func.func @step(%w: tensor<64xf32> {baechi.argument = 0 : i64, baechi.updated_by = 0 : i64}) -> (tensor<64xf32> {baechi.result = 0 : i64}) {
      %t = baechi.send %w to "b" queue 0 seq 0 : tensor<64xf32>
      %0 = call @other(%w) : (tensor<64xf32>) -> tensor<64xf32>
      baechi.await %t : !baechi.token
      return %0 : tensor<64xf32>
    }
  }
  module @b attributes {baechi.device = "b"} {
    func.func private @other(tensor<64xf32>) -> tensor<64xf32> attributes {baechi.kernel}
    func.func @step() -> (tensor<64xf32> {baechi.result = 1 : i64}) {
      %f = baechi.recv from "a" queue 0 seq 0 : !baechi.future<tensor<64xf32>>
      %w = baechi.await %f : !baechi.future<tensor<64xf32>>
      %0 = call @other(%w) : (tensor<64xf32>) -> tensor<64xf32>
      return %0 : tensor<64xf32>
    }
  }
}

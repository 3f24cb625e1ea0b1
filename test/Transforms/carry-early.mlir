// RUN: baechi-opt %s --baechi-carry-parameters --baechi-verify-partitioned | FileCheck %s

// The plan computes the long operator first, and the gradient that "b" waits
// for after it: computed and sent first the steps are shorter.

#machine = #baechi.machine<devices = [<"a", kind = "host", memory = 100000>, <"b", kind = "host", memory = 100000>], link_default = <"" -> "", latency_ns = 1000, bytes_per_us = 1>, link_model = parallel>
module attributes {baechi.exchange = "p3", baechi.machine = #machine, baechi.simulated_network} {
  func.func private @next(tensor<64xf32>, tensor<64xf32>) -> (tensor<64xf32> {baechi.may_alias = array<i64: 0>}) attributes {baechi.kernel}
  func.func private @use(tensor<64xf32>) -> tensor<64xf32> attributes {baechi.kernel}
  func.func private @long(tensor<64xf32>) -> tensor<64xf32> attributes {baechi.kernel}
  func.func private @step(tensor<64xf32> {baechi.device = "b"}) -> (tensor<64xf32> {baechi.device = "b"}, tensor<64xf32> {baechi.device = "a"})
  // CHECK-LABEL: module @a
  // CHECK: func.func @step
  // CHECK-NEXT: baechi.await_carried queue 1 seq 0
  // CHECK-NEXT: %[[USED:.*]] = call @use(
  // CHECK-NEXT: baechi.recv from "b" queue 1 seq 0 {baechi.carried = 0 : i64}
  // CHECK-NEXT: %[[G:.*]] = call @use(%[[USED]])
  // CHECK-NEXT: baechi.send %[[G]] to "b" queue 0 seq 0
  // CHECK-NEXT: call @long(%[[USED]])
  module @a attributes {baechi.device = "a"} {
    func.func private @use(tensor<64xf32>) -> tensor<64xf32> attributes {baechi.kernel}
    func.func private @long(tensor<64xf32>) -> tensor<64xf32> attributes {baechi.kernel}
    func.func @step() -> (tensor<64xf32> {baechi.result = 1 : i64}) {
      %f = baechi.recv from "b" queue 1 seq 0 : !baechi.future<tensor<64xf32>>
      %w = baechi.await %f : !baechi.future<tensor<64xf32>>
      %0 = call @use(%w) {baechi.cost = #baechi.cost<time_ns = {host = 1000}, scratch = 0>} : (tensor<64xf32>) -> tensor<64xf32>
      %1 = call @long(%0) {baechi.cost = #baechi.cost<time_ns = {host = 900000}, scratch = 0>} : (tensor<64xf32>) -> tensor<64xf32>
      %2 = call @use(%0) {baechi.cost = #baechi.cost<time_ns = {host = 1000}, scratch = 0>} : (tensor<64xf32>) -> tensor<64xf32>
      %t = baechi.send %2 to "b" queue 0 seq 0 : tensor<64xf32>
      baechi.await %t : !baechi.token
      return %1 : tensor<64xf32>
    }
  }
  module @b attributes {baechi.device = "b"} {
    func.func private @next(tensor<64xf32>, tensor<64xf32>) -> (tensor<64xf32> {baechi.may_alias = array<i64: 0>}) attributes {baechi.kernel}
    func.func @step(%w: tensor<64xf32> {baechi.argument = 0 : i64, baechi.updated_by = 0 : i64}) -> (tensor<64xf32> {baechi.result = 0 : i64}) {
      %t = baechi.send %w to "a" queue 1 seq 0 : tensor<64xf32>
      %f = baechi.recv from "a" queue 0 seq 0 : !baechi.future<tensor<64xf32>>
      %g = baechi.await %f : !baechi.future<tensor<64xf32>>
      %0 = call @next(%w, %g) {baechi.cost = #baechi.cost<time_ns = {host = 1000}, scratch = 0>} : (tensor<64xf32>, tensor<64xf32>) -> tensor<64xf32>
      baechi.await %t : !baechi.token
      return %0 : tensor<64xf32>
    }
  }
}

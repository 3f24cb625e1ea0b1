// RUN: baechi-opt %s --baechi-carry-parameters --baechi-verify-partitioned | FileCheck %s

// "b" adds its own part of the gradient, a view that the plan has after the long
// operator. The update need not wait for where a view stands, so views are where
// what they look at is made.

#machine = #baechi.machine<devices = [<"a", kind = "host", memory = 100000>, <"b", kind = "host", memory = 100000>], link_default = <"" -> "", latency_ns = 1000, bytes_per_us = 1>, link_model = parallel>
module attributes {baechi.exchange = "p3", baechi.machine = #machine, baechi.simulated_network} {
  func.func private @next(tensor<64xf32>, tensor<64xf32>, tensor<64xf32>) -> (tensor<64xf32> {baechi.may_alias = array<i64: 0>}) attributes {baechi.kernel}
  func.func private @use(tensor<64xf32>) -> tensor<64xf32> attributes {baechi.kernel}
  func.func private @own(tensor<64xf32>) -> tensor<128xf32> attributes {baechi.kernel}
  func.func private @long(tensor<128xf32>) -> tensor<64xf32> attributes {baechi.kernel}
  func.func private @step(tensor<64xf32> {baechi.device = "b"}, tensor<64xf32> {baechi.device = "b"}) -> (tensor<64xf32> {baechi.device = "b"}, tensor<64xf32> {baechi.device = "b"})
  module @a attributes {baechi.device = "a"} {
    func.func private @use(tensor<64xf32>) -> tensor<64xf32> attributes {baechi.kernel}
    func.func @step() {
      %f = baechi.recv from "b" queue 1 seq 0 : !baechi.future<tensor<64xf32>>
      %w = baechi.await %f : !baechi.future<tensor<64xf32>>
      %0 = call @use(%w) {baechi.cost = #baechi.cost<time_ns = {host = 1000}, scratch = 0>} : (tensor<64xf32>) -> tensor<64xf32>
      %t = baechi.send %0 to "b" queue 0 seq 0 : tensor<64xf32>
      baechi.await %t : !baechi.token
      return
    }
  }
  // CHECK-LABEL: module @b
  // CHECK: func.func @step
  // CHECK: %[[OWN:.*]] = call @own(
  // CHECK-NEXT: %[[PART:.*]] = tensor.extract_slice %[[OWN]]
  // CHECK: call @long(%[[OWN]])
  // CHECK: call @next(%{{.*}}, %[[PART]], %{{.*}})
  module @b attributes {baechi.device = "b"} {
    func.func private @next(tensor<64xf32>, tensor<64xf32>, tensor<64xf32>) -> (tensor<64xf32> {baechi.may_alias = array<i64: 0>}) attributes {baechi.kernel}
    func.func private @own(tensor<64xf32>) -> tensor<128xf32> attributes {baechi.kernel}
    func.func private @long(tensor<128xf32>) -> tensor<64xf32> attributes {baechi.kernel}
    func.func @step(%w: tensor<64xf32> {baechi.argument = 0 : i64, baechi.updated_by = 0 : i64}, %x: tensor<64xf32> {baechi.argument = 1 : i64}) -> (tensor<64xf32> {baechi.result = 0 : i64}, tensor<64xf32> {baechi.result = 1 : i64}) {
      %t = baechi.send %w to "a" queue 1 seq 0 : tensor<64xf32>
      %f = baechi.recv from "a" queue 0 seq 0 : !baechi.future<tensor<64xf32>>
      %own = call @own(%x) {baechi.cost = #baechi.cost<time_ns = {host = 1000}, scratch = 0>} : (tensor<64xf32>) -> tensor<128xf32>
      %1 = call @long(%own) {baechi.cost = #baechi.cost<time_ns = {host = 900000}, scratch = 0>} : (tensor<128xf32>) -> tensor<64xf32>
      %part = tensor.extract_slice %own[64] [64] [1] {baechi.view} : tensor<128xf32> to tensor<64xf32>
      %g = baechi.await %f : !baechi.future<tensor<64xf32>>
      %0 = call @next(%w, %part, %g) {baechi.cost = #baechi.cost<time_ns = {host = 1000}, scratch = 0>} : (tensor<64xf32>, tensor<64xf32>, tensor<64xf32>) -> tensor<64xf32>
      baechi.await %t : !baechi.token
      return %0, %1 : tensor<64xf32>, tensor<64xf32>
    }
  }
}

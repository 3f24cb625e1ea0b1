// Nodes coloured by device; tensors that cross devices are bold.
// RUN: baechi-translate %s --split-input-file --baechi-to-dot | FileCheck %s

// CHECK: digraph step {
// CHECK: n0 [label="the \"input\"\n4.00 KiB", shape=ellipse, fillcolor="/set312/1"]
// CHECK: n1 [label="sum\ncuda 7 ns\nhost 1000 ns", fillcolor="/set312/1"]
// CHECK: n2 [label="product\nhost 1000 ns", fillcolor="/set312/2"]
// CHECK: n0 -> n1 [label="4.00 KiB"]
// CHECK: n1 -> n2 [label="4.00 KiB", style=bold]
// CHECK: "device a" [shape=plain, style=filled, fillcolor="/set312/1"]
// CHECK: "device b" [shape=plain, style=filled, fillcolor="/set312/2"]
// CHECK: }
module attributes {baechi.machine = #baechi.machine<devices = [<"a", kind = "host", memory = 100000>, <"b", kind = "host", memory = 100000>], link_model = duplex>} {
  func.func @step(%x: tensor<1024xf32> {baechi.name = "the \22input\22", baechi.device = "a"}) -> tensor<1024xf32> {
    %0 = arith.addf %x, %x {baechi.name = "sum", baechi.device = "a", baechi.cost = #baechi.cost<time_ns = {cuda = 7, host = 1000}, scratch = 0>} : tensor<1024xf32>
    %1 = arith.mulf %0, %0 {baechi.name = "product", baechi.device = "b", baechi.cost = #baechi.cost<time_ns = {host = 1000}, scratch = 0>} : tensor<1024xf32>
    return %1 : tensor<1024xf32>
  }
}

// -----

// Not placed yet: no colours. An order without data is dotted: the update
// overwrites what the other operator reads.
// CHECK: digraph step {
// CHECK: n0 [label="arg0\n4.00 KiB", shape=ellipse]
// CHECK: n1 [label="arith.addf\nhost 1 ns"]
// CHECK: n2 [label="update\nhost 1 ns"]
// CHECK: n1 -> n2 [style=dotted]
// CHECK-NOT: device
// CHECK: }
func.func private @update(%w: tensor<1024xf32>) -> (tensor<1024xf32> {baechi.may_alias = array<i64: 0>}) attributes {baechi.kernel} {
  return %w : tensor<1024xf32>
}
func.func @step(%x: tensor<1024xf32> {baechi.updated_by = 1 : i64}) -> (tensor<1024xf32>, tensor<1024xf32>) {
  %0 = arith.addf %x, %x {baechi.cost = #baechi.cost<time_ns = {host = 1}, scratch = 0>} : tensor<1024xf32>
  %1 = call @update(%x) {baechi.cost = #baechi.cost<time_ns = {host = 1}, scratch = 0>} : (tensor<1024xf32>) -> tensor<1024xf32>
  return %0, %1 : tensor<1024xf32>, tensor<1024xf32>
}

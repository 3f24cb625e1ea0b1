// Pins and groups are honoured, and the transfers that they force are planned.
// RUN: baechi-opt %s --baechi-place=msct --baechi-verify-placed | FileCheck %s

// 4000 bytes at 1000 bytes/us after 500 ns: 4500 ns.
module attributes {baechi.machine = #baechi.machine<
    devices = [<"a", kind = "host", memory = 100000>, <"b", kind = "cuda", memory = 100000>],
    links = [<"a" -> "b", latency_ns = 500, bytes_per_us = 1000>, <"b" -> "a", latency_ns = 500, bytes_per_us = 1000>],
    link_model = duplex>} {
  // CHECK: func.func @step(%{{.*}}: tensor<1000xf32> {baechi.device = "a", baechi.pin = "a"}
  // CHECK-SAME: baechi.certificate = #baechi.placement_certificate<placer = "msct"
  // CHECK-SAME: makespan = 6500
  func.func @step(%x: tensor<1000xf32> {baechi.pin = "a"}) -> (tensor<1000xf32>, tensor<1000xf32>) {
    // CHECK-NEXT: arith.addf
    // CHECK-SAME: baechi.device = "a"
    // CHECK-SAME: baechi.sends = [#baechi.transfer<result = 0, from = "a", to = "b", start = 1000, end = 5500>]
    // CHECK-SAME: baechi.start = 0 : i64
    %0 = arith.addf %x, %x {baechi.cost = #baechi.cost<time_ns = {host = 1000, cuda = 1}, scratch = 0>, baechi.pin = "a"} : tensor<1000xf32>
    // CHECK-NEXT: arith.mulf
    // CHECK-SAME: baechi.device = "b"
    // CHECK-SAME: baechi.start = 5500 : i64
    %1 = arith.mulf %0, %0 {baechi.cost = #baechi.cost<time_ns = {host = 1, cuda = 500}, scratch = 0>, baechi.group = "g"} : tensor<1000xf32>
    // The group follows its member that only a cuda device can run.
    // CHECK-NEXT: arith.subf
    // CHECK-SAME: baechi.device = "b"
    // CHECK-SAME: baechi.start = 6000 : i64
    %2 = arith.subf %1, %1 {baechi.cost = #baechi.cost<time_ns = {cuda = 500}, scratch = 0>, baechi.group = "g"} : tensor<1000xf32>
    return %1, %2 : tensor<1000xf32>, tensor<1000xf32>
  }
}

// What a GPU has let go of is used again only after 16 operators, or as many as
// there is room for: in its memory, and in twice what is needed. A host device
// uses it at once.

// RUN: baechi-opt %s --baechi-plan-memory --baechi-verify-partitioned | FileCheck %s
// RUN: sed 's/kind = "cuda", memory = 4096/kind = "cuda", memory = 256/' %s | baechi-opt --baechi-plan-memory --baechi-verify-partitioned | FileCheck %s --check-prefix=SMALL
// RUN: sed 's/kind = "cuda", memory = 4096/kind = "cuda", memory = 192/' %s | baechi-opt --baechi-plan-memory --baechi-verify-partitioned | FileCheck %s --check-prefix=NONE

module attributes {baechi.machine = #baechi.machine<devices = [<"cpu", kind = "host", memory = 4096>, <"gpu", kind = "cuda", memory = 4096>], link_default = <"" -> "", latency_ns = 1, bytes_per_us = 1000>, link_model = parallel>} {
  func.func private @step(tensor<16xf32>, tensor<16xf32>) -> (tensor<16xf32>, tensor<16xf32>)
  module @cpu attributes {baechi.device = "cpu"} {
    func.func @step(%x: tensor<16xf32> {baechi.argument = 0 : i64}) -> (tensor<16xf32> {baechi.result = 0 : i64}) {
      %0 = math.exp %x : tensor<16xf32>
      %1 = math.log %0 : tensor<16xf32>
      %2 = math.exp %1 : tensor<16xf32>
      %3 = math.log %2 : tensor<16xf32>
      return %3 : tensor<16xf32>
    }
  }
  module @gpu attributes {baechi.device = "gpu"} {
    func.func @step(%x: tensor<16xf32> {baechi.argument = 1 : i64}) -> (tensor<16xf32> {baechi.result = 1 : i64}) {
      %0 = math.exp %x : tensor<16xf32>
      %1 = math.log %0 : tensor<16xf32>
      %2 = math.exp %1 : tensor<16xf32>
      %3 = math.log %2 : tensor<16xf32>
      return %3 : tensor<16xf32>
    }
  }
}

// CHECK: module @cpu attributes {baechi.arena = #baechi.arena<bytes = 192, resident = 64, live = 192, limit = 4096>
// CHECK: math.exp %{{.*}} {baechi.offset = array<i64: 64>}
// CHECK: math.log %{{.*}} {baechi.offset = array<i64: 128>}
// CHECK: math.exp %{{.*}} {baechi.offset = array<i64: 64>}
// CHECK: math.log %{{.*}} {baechi.offset = array<i64: 128>}
// CHECK: module @gpu attributes {baechi.arena = #baechi.arena<bytes = 320, resident = 64, live = 192, limit = 4096>
// CHECK: math.exp %{{.*}} {baechi.offset = array<i64: 64>}
// CHECK: math.log %{{.*}} {baechi.offset = array<i64: 128>}
// CHECK: math.exp %{{.*}} {baechi.offset = array<i64: 192>}
// CHECK: math.log %{{.*}} {baechi.offset = array<i64: 256>}

// SMALL: module @gpu attributes {baechi.arena = #baechi.arena<bytes = 256, resident = 64, live = 192, limit = 256>
// SMALL: math.exp %{{.*}} {baechi.offset = array<i64: 64>}
// SMALL: math.log %{{.*}} {baechi.offset = array<i64: 128>}
// SMALL: math.exp %{{.*}} {baechi.offset = array<i64: 192>}
// SMALL: math.log %{{.*}} {baechi.offset = array<i64: 64>}

// NONE: module @gpu attributes {baechi.arena = #baechi.arena<bytes = 192, resident = 64, live = 192, limit = 192>
// NONE: math.exp %{{.*}} {baechi.offset = array<i64: 64>}
// NONE: math.log %{{.*}} {baechi.offset = array<i64: 128>}
// NONE: math.exp %{{.*}} {baechi.offset = array<i64: 64>}
// NONE: math.log %{{.*}} {baechi.offset = array<i64: 128>}

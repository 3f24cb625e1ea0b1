// A planned program as its manifest and as the trace of its predicted timeline.
// RUN: baechi-opt %s --baechi-verify-placed --baechi-partition --baechi-plan-memory --mlir-print-debuginfo -o %t.mlir
// RUN: baechi-translate %t.mlir --baechi-to-manifest -o %t.manifest.json
// RUN: baechi-translate %t.mlir --baechi-to-trace -o %t.trace.json
// RUN: %python -m json.tool --indent=1 %t.manifest.json | FileCheck %s --check-prefix=MANIFEST
// RUN: %python -m json.tool --compact %t.trace.json | FileCheck %s --check-prefix=TRACE
// Numbers that --baechi-verify-partitioned refuses: the plan's times, no groups.
// RUN: sed '/baechi.recv/s/queue 0/queue 7/' %t.mlir | baechi-translate --baechi-to-manifest | FileCheck %s --check-prefix=WILD
// RUN: sed '/baechi.send/s/queue 0/queue 900000000000/' %t.mlir | baechi-translate --baechi-to-manifest | FileCheck %s --check-prefix=WILD

// WILD-NOT: "group":
// WILD: "end_ns":2000
// WILD-NOT: "group":

// MANIFEST: "arguments": [
// MANIFEST: "name": "w",
// MANIFEST: "updated_by": 0
// MANIFEST: "devices": [
// MANIFEST: "arena_bytes": 128,
// MANIFEST: "entry": "baechi_step_a",
// MANIFEST: "kernel": "double",
// MANIFEST: "ends": true,
// MANIFEST-NEXT: "format": "baechi-program",
// MANIFEST: "queues": [
// MANIFEST: "bytes": 64,
// MANIFEST-NEXT: "end_ns": 1000,
// MANIFEST-NEXT: "group": 0,
// MANIFEST-NEXT: "name": "layer/double",
// MANIFEST-NEXT: "operator": 1,
// MANIFEST-NEXT: "start_ns": 1000
// MANIFEST: "results": [

// By the runtime's rules, not the plan's: a message between devices of one
// process is lent, which takes no time.
// A row a device and a queue, a span an operator and a transfer (in us), and
// an arrow.
// TRACE: "args":{"name":"predicted"}
// TRACE-DAG: "args":{"name":"a"}
// TRACE-DAG: "args":{"name":"b"}
// TRACE-DAG: "args":{"name":"a -> b"}
// TRACE-DAG: {"ph":"X","pid":1,"tid":0,"name":"layer/double","ts":0.0,"dur":1.0,"args":{"kernel":"double"}}
// TRACE-DAG: {"ph":"X","pid":1,"tid":2,"name":"layer/double","ts":1.0,"dur":0.0,"args":{"bytes":64}}
// TRACE-DAG: "ph":"s"
// TRACE-DAG: "ph":"f"
module attributes {baechi.machine = #baechi.machine<devices = [<"a", kind = "host", memory = 1000>, <"b", kind = "host", memory = 1000>], link_model = duplex>} {
  func.func private @double(%x: tensor<16xf32>) -> tensor<16xf32> attributes {baechi.kernel} {
    %0 = arith.addf %x, %x : tensor<16xf32>
    return %0 : tensor<16xf32>
  }
  func.func @step(%w: tensor<16xf32> {baechi.name = "w", baechi.device = "a", baechi.updated_by = 0 : i64}) -> (tensor<16xf32>, tensor<16xf32>) {
    %0 = call @double(%w) {baechi.device = "a", baechi.start = 0 : i64, baechi.cost = #baechi.cost<time_ns = {host = 1000}, scratch = 0>, baechi.sends = [#baechi.transfer<result = 0, from = "a", to = "b", start = 1000, end = 2000>]} : (tensor<16xf32>) -> tensor<16xf32> loc("layer/double")
    %1 = call @double(%0) {baechi.device = "b", baechi.start = 2000 : i64, baechi.cost = #baechi.cost<time_ns = {host = 1000}, scratch = 0>} : (tensor<16xf32>) -> tensor<16xf32> loc("output")
    return %0, %1 : tensor<16xf32>, tensor<16xf32>
  }
}

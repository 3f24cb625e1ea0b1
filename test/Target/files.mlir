// A hand-placed program as graph, machine and placement files, and the oracle's
// word on them.
// RUN: baechi-translate %s --baechi-to-graph -o %t.graph.json
// RUN: baechi-translate %s --baechi-to-machine -o %t.machine.json
// RUN: baechi-translate %s --baechi-to-placement -o %t.placement.json
// RUN: %python %oracle %t.graph.json %t.machine.json %t.placement.json | FileCheck %s --check-prefix=ORACLE
// RUN: %python -m json.tool %t.graph.json | FileCheck %s --check-prefix=GRAPH
// RUN: %python -m json.tool %t.machine.json | FileCheck %s --check-prefix=MACHINE
// RUN: %python -m json.tool %t.placement.json | FileCheck %s --check-prefix=PLACEMENT

// ORACLE-NOT: violation
// ORACLE: makespan 0.006500 ms

// A parameter is resident and has no time; its update in place holds nothing
// of its own, and comes after the other reader.
// GRAPH: "name": "w"
// GRAPH-NEXT: "time_ns": 0,
// GRAPH: "resident": 4032,
// GRAPH: "name": "double"
// GRAPH: "host": 1000
// GRAPH: "bytes": 4000,
// GRAPH-NEXT: "memory": 4032,
// GRAPH-NEXT: "copy": 4032
// GRAPH: "scratch": 128
// GRAPH: "name": "update"
// GRAPH: "memory": 0
// GRAPH: "result": true
// GRAPH: "from": 0,
// GRAPH-NEXT: "output": 0,
// GRAPH-NEXT: "to": 1

// MACHINE: "name": "a",
// MACHINE-NEXT: "kind": "host",
// MACHINE-NEXT: "memory": 100000
// MACHINE: "link_model": "duplex"

// PLACEMENT: "algorithm": "best"
// PLACEMENT-NEXT: "makespan_ns": 6500,
// PLACEMENT-NEXT: "lower_bound_ns": 2000,
// PLACEMENT: "id": 1,
// PLACEMENT-NEXT: "name": "double",
// PLACEMENT-NEXT: "device": "a",
// PLACEMENT-NEXT: "start_ns": 0
// PLACEMENT: "transfers": [
// PLACEMENT-NEXT: {
// PLACEMENT-NEXT: "op": 1,
// PLACEMENT-NEXT: "output": 0,
// PLACEMENT-NEXT: "from": "a",
// PLACEMENT-NEXT: "to": "b",
// PLACEMENT-NEXT: "start_ns": 1000,
// PLACEMENT-NEXT: "end_ns": 5500
module attributes {baechi.machine = #baechi.machine<
    devices = [<"a", kind = "host", memory = 100000>, <"b", kind = "host", memory = 100000>],
    link_default = <"" -> "", latency_ns = 500, bytes_per_us = 1000>, link_model = duplex>} {
  func.func private @update(%w: tensor<1000xf32>, %g: tensor<1000xf32>) -> (tensor<1000xf32> {baechi.may_alias = array<i64: 0>}) attributes {baechi.kernel} {
    %0 = arith.subf %w, %g : tensor<1000xf32>
    return %0 : tensor<1000xf32>
  }
  func.func @step(%w: tensor<1000xf32> {baechi.name = "w", baechi.device = "a", baechi.updated_by = 1 : i64}) -> (tensor<1000xf32>, tensor<1000xf32>)
      attributes {baechi.certificate = #baechi.placement_certificate<placer = "msct", winner = "best", makespan = 6500, lower_bound = 2000, bound = "critical path", single_device = 3000, operators = 4, groups = 3>} {
    %0 = arith.addf %w, %w {baechi.name = "double", baechi.device = "a", baechi.start = 0 : i64, baechi.cost = #baechi.cost<time_ns = {host = 1000}, scratch = 100>, baechi.sends = [#baechi.transfer<result = 0, from = "a", to = "b", start = 1000, end = 5500>]} : tensor<1000xf32>
    %1 = call @update(%w, %0) {baechi.name = "update", baechi.device = "a", baechi.start = 1000 : i64, baechi.cost = #baechi.cost<time_ns = {host = 1000}, scratch = 0>} : (tensor<1000xf32>, tensor<1000xf32>) -> tensor<1000xf32>
    %2 = arith.mulf %0, %0 {baechi.name = "square", baechi.device = "b", baechi.start = 5500 : i64, baechi.cost = #baechi.cost<time_ns = {host = 1000}, scratch = 0>} : tensor<1000xf32>
    return %2, %1 : tensor<1000xf32>, tensor<1000xf32>
  }
}

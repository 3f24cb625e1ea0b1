// A training step of an MLP as a graph for machines of nodes: two parts of a
// batch of 8, and what replicas exchange: the bytes of the six parameters'
// gradients (7720), and of the loss.

// RUN: baechi-opt %fixtures/mlp_tiny.mlir --baechi-inline-step --baechi-annotate-costs --baechi-export-nodes="file=%t.json parts=2 pieces=2,4,8" -o /dev/null
// RUN: %python %S/Inputs/nodes_sums.py %t.json | FileCheck %s
// CHECK: parts 54 54
// CHECK: exchange 7724
// CHECK: ways data/2 data/4 tensor/2 tensor/4 tensor/8

// RUN: printf '{"format":"baechi-machine","version":1,"nodes":2,"devices_per_node":4,"device":{"kind":"cuda","memory":80000000000},"inside":{"latency_ns":2000,"bytes_per_us":300000},"between":{"latency_ns":5000,"bytes_per_us":25000},"link_model":"duplex"}' > %t.machine.json
// RUN: baechi-place %t.json %t.machine.json --budget=0 -o %t.placement.json
// RUN: %python %oracle %t.json %t.machine.json %t.placement.json | FileCheck %s --check-prefix=REPLAY
// RUN: baechi-place %t.json %t.machine.json --grid=data/4:1:2 -o %t.grid.json
// RUN: %python %oracle %t.json %t.machine.json %t.grid.json | FileCheck %s --check-prefix=REPLAY
// RUN: baechi-place %t.json %t.machine.json --grid=tensor/2:2:2 -o %t.tensor.json
// RUN: %python %oracle %t.json %t.machine.json %t.tensor.json | FileCheck %s --check-prefix=REPLAY
// REPLAY-NOT: violation
// REPLAY: makespan

// The first layer by columns, the second by rows: what it makes are summands.
// RUN: FileCheck %s --check-prefix=MEGATRON --input-file=%t.json
// MEGATRON: "name":"p0/l0/dot_general#2"
// MEGATRON-SAME: {"name":"tensor/2","pieces":[{{[^]]*}}],"outputs":[{"along":3,"sizes":[16,16]}],"inputs":[{"from":1,"output":0,"along":1,"sizes":[16,16]}]}
// MEGATRON-SAME: "name":"p0/l1/dot_general#2"
// MEGATRON-SAME: {"name":"tensor/2","pieces":[{{[^]]*}}],"outputs":[{"partial":true}],"inputs":[{"from":{{[0-9]+}},"output":0,"along":3,"sizes":[16,16]},{"from":3,"output":0,"along":0,"sizes":[16,16]}]

// In one part all operators are those of --baechi-to-graph that compute.
// RUN: baechi-opt %fixtures/mlp_tiny.mlir --baechi-inline-step --baechi-annotate-costs --baechi-export-nodes="file=%t.one.json parts=1 pieces=2" -o /dev/null
// RUN: %python %S/Inputs/nodes_sums.py %t.one.json | FileCheck %s --check-prefix=ONE
// ONE: parts{{$}}
// ONE: exchange 0
// ONE: ways data/2{{$}}

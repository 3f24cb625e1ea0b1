// A sum over the batch that is returned as it is: replicas exchange its bytes.
// Rows that are returned are results of their parts.

// RUN: baechi-opt %s --baechi-annotate-costs --remarks-filter="baechi-export-nodes" --baechi-export-nodes="file=%t.json parts=4 pieces=2" -o /dev/null 2>&1 | FileCheck %s --allow-empty --implicit-check-not=Missed
// RUN: %python %S/Inputs/nodes_sums.py %t.json | FileCheck %s --check-prefix=SUMS
// SUMS: parts 3 3 3 3
// SUMS: exchange 1024
// RUN: FileCheck %s --check-prefix=FILE --input-file=%t.json
// FILE: "name":"{{[^"]*}}.sum","time_ns":0,"outputs":[{"bytes":1024,"memory":0,"copy":1024}],"resident":1024,"group":"{{[^"]*}}","result":true,"exchange":1024

// RUN: printf '{"format":"baechi-machine","version":1,"nodes":2,"devices_per_node":2,"device":{"kind":"cuda","memory":80000000000},"inside":{"latency_ns":2000,"bytes_per_us":300000},"between":{"latency_ns":5000,"bytes_per_us":25000},"link_model":"duplex"}' > %t.machine.json
// RUN: baechi-place %t.json %t.machine.json --grid=data/2:1:2 -o %t.placement.json
// RUN: %python %oracle %t.json %t.machine.json %t.placement.json | FileCheck %s --check-prefix=REPLAY
// REPLAY-NOT: violation
// REPLAY: makespan

#rows = affine_map<(d0, d1) -> (d0, d1)>
#columns = affine_map<(d0, d1) -> (d1)>
func.func @sums(%x: tensor<64x256xf32>) -> (tensor<256xf32>, tensor<64x256xf32>) {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<256xf32>
  %z = linalg.fill ins(%zero : f32) outs(%e : tensor<256xf32>) -> tensor<256xf32>
  %s = linalg.generic {indexing_maps = [#rows, #columns], iterator_types = ["reduction", "parallel"]} ins(%x : tensor<64x256xf32>) outs(%z : tensor<256xf32>) {
  ^bb0(%a: f32, %sum: f32):
    %t = arith.addf %a, %sum : f32
    linalg.yield %t : f32
  } -> tensor<256xf32>
  %y = math.exp %x : tensor<64x256xf32>
  return %s, %y : tensor<256xf32>, tensor<64x256xf32>
}

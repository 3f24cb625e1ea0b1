// Rows in another order: what moves them reads rows of all parts, and no sum.
// Replicas gather 65536 bytes, which is one way of the two that an exchange
// goes: it is of half as many. The whole tensor is held meanwhile.

// RUN: baechi-opt %s --baechi-annotate-costs --remarks-filter="baechi-export-nodes" --baechi-export-nodes="file=%t.json parts=4 pieces=2" -o /dev/null 2>&1 | FileCheck %s
// CHECK: export-nodes-gathered.mlir:[[#@LINE+16]]:{{[0-9]+}}: remark: [Missed] gathered
// RUN: FileCheck %s --check-prefix=FILE --input-file=%t.json
// FILE: "outputs":[{"bytes":65536,"memory":65536,"copy":65536,"shape":[64,256]}],"scratch":65536,{{[^}]*}}"result":true,"exchange":32768,
// FILE-SAME: "replicas":2,"exchange":32768

// RUN: printf '{"format":"baechi-machine","version":1,"nodes":2,"devices_per_node":2,"device":{"kind":"cuda","memory":80000000000},"inside":{"latency_ns":2000,"bytes_per_us":300000},"between":{"latency_ns":5000,"bytes_per_us":25000},"link_model":"duplex"}' > %t.machine.json
// RUN: baechi-place %t.json %t.machine.json --grid=data/2:1:2 -o %t.placement.json
// RUN: %python %oracle %t.json %t.machine.json %t.placement.json | FileCheck %s --check-prefix=REPLAY
// REPLAY-NOT: violation
// REPLAY: makespan

#first = affine_map<(d0, d1) -> (d0)>
#both = affine_map<(d0, d1) -> (d0, d1)>
func.func @gathered(%x: tensor<64x256xf32>, %at: tensor<64xindex> {baechi.updated_by = 1 : i64}) -> (tensor<64x256xf32>, tensor<64xindex>) {
  %y = math.exp %x : tensor<64x256xf32>
  %o = tensor.empty() : tensor<64x256xf32>
  %r = linalg.generic {indexing_maps = [#first, #both], iterator_types = ["parallel", "parallel"]} ins(%at : tensor<64xindex>) outs(%o : tensor<64x256xf32>) {
  ^bb0(%i: index, %out: f32):
    %c = linalg.index 1 : index
    %v = tensor.extract %y[%i, %c] : tensor<64x256xf32>
    linalg.yield %v : f32
  } -> tensor<64x256xf32>
  return %r, %at : tensor<64x256xf32>, tensor<64xindex>
}

// Rows less the sum of all rows: parts would read each other. The graph is of
// one part, and a remark says where.

// RUN: baechi-opt %s --baechi-annotate-costs --remarks-filter="baechi-export-nodes" --baechi-export-nodes="file=%t.json parts=4 pieces=2" -o /dev/null 2>&1 | FileCheck %s
// RUN: %python %S/Inputs/nodes_sums.py %t.json | FileCheck %s --check-prefix=SUMS
// SUMS: parts{{$}}
// SUMS: exchange 0
// SUMS: ways data/2

#rows = affine_map<(d0, d1) -> (d0, d1)>
#columns = affine_map<(d0, d1) -> (d1)>
func.func @centred(%x: tensor<64x256xf32>) -> tensor<64x256xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<256xf32>
  %z = linalg.fill ins(%zero : f32) outs(%e : tensor<256xf32>) -> tensor<256xf32>
  // CHECK: export-nodes-meet.mlir:[[#@LINE+2]]:{{[0-9]+}}: remark: [Missed] not-parted
  // CHECK-SAME: it is made of the whole batch, and parts read it
  %s = linalg.generic {indexing_maps = [#rows, #columns], iterator_types = ["reduction", "parallel"]} ins(%x : tensor<64x256xf32>) outs(%z : tensor<256xf32>) {
  ^bb0(%a: f32, %sum: f32):
    %t = arith.addf %a, %sum : f32
    linalg.yield %t : f32
  } -> tensor<256xf32>
  %o = tensor.empty() : tensor<64x256xf32>
  %y = linalg.generic {indexing_maps = [#rows, #columns, #rows], iterator_types = ["parallel", "parallel"]} ins(%x, %s : tensor<64x256xf32>, tensor<256xf32>) outs(%o : tensor<64x256xf32>) {
  ^bb0(%a: f32, %b: f32, %out: f32):
    %t = arith.subf %a, %b : f32
    linalg.yield %t : f32
  } -> tensor<64x256xf32>
  return %y : tensor<64x256xf32>
}

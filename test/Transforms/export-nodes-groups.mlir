// A person's group with a sum of the batch in it: it is one with the group of
// what reads the sum, so that all of it is still on one device.

// RUN: baechi-opt %s --baechi-annotate-costs --baechi-export-nodes="file=%t.json parts=2 pieces=2" -o /dev/null
// RUN: %python %S/Inputs/nodes_groups.py %t.json | FileCheck %s
// CHECK: {{^}}math.exp p0/linalg.generic p0/linalg.matmul p1/linalg.generic p1/linalg.matmul

#rows = affine_map<(d0, d1) -> (d0, d1)>
#columns = affine_map<(d0, d1) -> (d1)>
func.func @grouped(%x: tensor<64x256xf32>, %w: tensor<256x256xf32> {baechi.updated_by = 2 : i64}) -> (tensor<256xf32>, tensor<64x256xf32>, tensor<256x256xf32>) {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<256xf32>
  %z = linalg.fill ins(%zero : f32) outs(%e : tensor<256xf32>) -> tensor<256xf32>
  %s = linalg.generic {indexing_maps = [#rows, #columns], iterator_types = ["reduction", "parallel"]} ins(%x : tensor<64x256xf32>) outs(%z : tensor<256xf32>) attrs = {baechi.group = "mine"} {
  ^bb0(%a: f32, %sum: f32):
    %t = arith.addf %a, %sum : f32
    linalg.yield %t : f32
  } -> tensor<256xf32>
  %d = math.exp %s : tensor<256xf32>
  %o = tensor.empty() : tensor<64x256xf32>
  %oz = linalg.fill ins(%zero : f32) outs(%o : tensor<64x256xf32>) -> tensor<64x256xf32>
  %y = linalg.matmul {baechi.group = "mine"} ins(%x, %w : tensor<64x256xf32>, tensor<256x256xf32>) outs(%oz : tensor<64x256xf32>) -> tensor<64x256xf32>
  return %d, %y, %w : tensor<256xf32>, tensor<64x256xf32>, tensor<256x256xf32>
}

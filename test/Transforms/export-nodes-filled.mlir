// Rows less a tensor that is filled with the sum of all rows: what fills takes
// no time, but carries on what it reads. The graph is of one part.

// RUN: baechi-opt %s --baechi-annotate-costs --remarks-filter="baechi-export-nodes" --baechi-export-nodes="file=%t.json parts=2 pieces=2" -o /dev/null 2>&1 | FileCheck %s
// RUN: %python %S/Inputs/nodes_sums.py %t.json | FileCheck %s --check-prefix=SUMS
// CHECK: [Missed] not-parted {{.*}}it is made of the whole batch, and parts read it
// CHECK: [Passed] batch {{.*}}Along="dimension 0 of argument 0", Parts=1, Rows=64
// SUMS: parts{{$}}
// SUMS: exchange 0

#v = affine_map<(d0, d1) -> (d0, d1)>
#s = affine_map<(d0, d1) -> ()>
func.func @f(%x: tensor<64x256xf32>) -> tensor<64x256xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<f32>
  %z = linalg.fill ins(%zero : f32) outs(%e : tensor<f32>) -> tensor<f32>
  %s = linalg.generic {indexing_maps = [#v, #s], iterator_types = ["reduction", "reduction"]} ins(%x : tensor<64x256xf32>) outs(%z : tensor<f32>) {
  ^bb0(%a: f32, %sum: f32):
    %t = arith.addf %a, %sum : f32
    linalg.yield %t : f32
  } -> tensor<f32>
  %q = tensor.extract %s[] : tensor<f32>
  %e2 = tensor.empty() : tensor<64x256xf32>
  %f = linalg.fill ins(%q : f32) outs(%e2 : tensor<64x256xf32>) -> tensor<64x256xf32>
  %u = arith.subf %x, %f : tensor<64x256xf32>
  return %u : tensor<64x256xf32>
}

// What reads rows of all parts would read all of them in each piece, too: it is cut in rows alone,
// and so is what is joined with it.
// RUN: baechi-opt %s --baechi-annotate-costs --baechi-export-nodes="file=%t.json parts=4 pieces=2" -o /dev/null
// RUN: FileCheck %s --input-file=%t.json
// CHECK: "name":"linalg.generic"
// CHECK-NOT: "tensor/2"
#at = affine_map<(i, n, k) -> (i)>
#w = affine_map<(i, n, k) -> (k, n)>
#o = affine_map<(i, n, k) -> (i, n)>
func.func @g(%x: tensor<64x256xf32>, %at: tensor<64xindex> {baechi.updated_by = 1 : i64}, %w: tensor<256x512xf32> {baechi.updated_by = 2 : i64}) -> (tensor<64x512xf32>, tensor<64xindex>, tensor<256x512xf32>) {
  %zero = arith.constant 0.0 : f32
  %y = math.exp %x : tensor<64x256xf32>
  %e = tensor.empty() : tensor<64x512xf32>
  %z = linalg.fill ins(%zero : f32) outs(%e : tensor<64x512xf32>) -> tensor<64x512xf32>
  %r = linalg.generic {indexing_maps = [#at, #w, #o], iterator_types = ["parallel", "parallel", "reduction"]} ins(%at, %w : tensor<64xindex>, tensor<256x512xf32>) outs(%z : tensor<64x512xf32>) {
  ^bb0(%i: index, %b: f32, %s: f32):
    %k = linalg.index 2 : index
    %v = tensor.extract %y[%i, %k] : tensor<64x256xf32>
    %m = arith.mulf %v, %b : f32
    %t = arith.addf %s, %m : f32
    linalg.yield %t : f32
  } -> tensor<64x512xf32>
  return %r, %at, %w : tensor<64x512xf32>, tensor<64xindex>, tensor<256x512xf32>
}

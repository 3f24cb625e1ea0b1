// What reads a sum of all parts is one operator with what follows: its scratch
// is the most that is live at a time, two tensors of 1024 bytes of the three
// between the sum and the result.

// RUN: baechi-opt %s --baechi-annotate-costs --baechi-export-nodes="file=%t.json parts=4 pieces=2" -o /dev/null
// RUN: FileCheck %s --input-file=%t.json
// CHECK: "outputs":[{"bytes":1024,"memory":1024,"copy":1024,"shape":[256]}],"scratch":2048,"resident":1024,{{[^}]*}}"result":true,"exchange":1024

#rows = affine_map<(d0, d1) -> (d0, d1)>
#columns = affine_map<(d0, d1) -> (d1)>
func.func @joined(%x: tensor<64x256xf32>, %w: tensor<256x256xf32> {baechi.updated_by = 2 : i64}) -> (tensor<256xf32>, tensor<64x256xf32>, tensor<256x256xf32>) {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<256xf32>
  %z = linalg.fill ins(%zero : f32) outs(%e : tensor<256xf32>) -> tensor<256xf32>
  %s = linalg.generic {indexing_maps = [#rows, #columns], iterator_types = ["reduction", "parallel"]} ins(%x : tensor<64x256xf32>) outs(%z : tensor<256xf32>) {
  ^bb0(%a: f32, %sum: f32):
    %t = arith.addf %a, %sum : f32
    linalg.yield %t : f32
  } -> tensor<256xf32>
  %a = math.exp %s : tensor<256xf32>
  %b = math.exp %a : tensor<256xf32>
  %c = math.exp %b : tensor<256xf32>
  %d = math.exp %c : tensor<256xf32>
  %o = tensor.empty() : tensor<64x256xf32>
  %oz = linalg.fill ins(%zero : f32) outs(%o : tensor<64x256xf32>) -> tensor<64x256xf32>
  %y = linalg.matmul ins(%x, %w : tensor<64x256xf32>, tensor<256x256xf32>) outs(%oz : tensor<64x256xf32>) -> tensor<64x256xf32>
  return %d, %y, %w : tensor<256xf32>, tensor<64x256xf32>, tensor<256x256xf32>
}

// Weights that are larger than the batch: cutting the batch, which saves the
// most alone, packs all of each weight for each piece. The features between two
// layers and two more are cut instead, and what is between them along the batch.
// RUN: baechi-opt %s --baechi-split="pieces=2 reductions=true stored=true" --remarks-filter=baechi-split 2>&1 | FileCheck %s
// RUN: baechi-opt %s --baechi-split="pieces=2 reductions=true stored=true largest-first=true" --remarks-filter=baechi-split 2>&1 | FileCheck %s --check-prefix=LARGEST

// CHECK: [Passed] split | {{.*}} CopiedUs={{[1-9][0-9]*}}, Operations=3, PartialResults=1, Pieces=512+512, Reason="it loses the least of what its pieces save", SavedUs={{[1-9][0-9]*}}, SentUs=0
// CHECK: [Passed] split | {{.*}} Operations=3, PartialResults=1, Pieces=512+512
// CHECK: [Passed] split | {{.*}} Operations=1, PartialResults=0, Pieces=64+64
// CHECK: [Passed] stored-in-pieces | {{.*}} Arguments=4, Bytes=16777216, Results=0
// CHECK: module
// CHECK-COUNT-2: linalg.matmul ins({{.*}} : tensor<128x1024xf32>, tensor<1024x512xf32>)
// CHECK-COUNT-2: linalg.matmul ins({{.*}} : tensor<128x512xf32>, tensor<512x1024xf32>)
// What is added up is so in the pieces that read it.
// CHECK-COUNT-2: } -> tensor<64x1024xf32>
// CHECK-COUNT-2: math.tanh {{.*}} : tensor<64x1024xf32>
// CHECK-COUNT-2: linalg.matmul ins({{.*}} : tensor<128x1024xf32>, tensor<1024x512xf32>)
// CHECK-COUNT-2: linalg.matmul ins({{.*}} : tensor<128x512xf32>, tensor<512x1024xf32>)
// What is returned, as a whole.
// CHECK: attrs = {baechi.partials}
// CHECK: } -> tensor<128x1024xf32>

// LARGEST: [Passed] split | {{.*}} Operations=7, PartialResults=0, Pieces=64+64, Reason="it saves the most of what is left"
// LARGEST-NOT: [Passed] split
// LARGEST: module
// LARGEST-COUNT-8: linalg.matmul ins({{.*}} : tensor<64x1024xf32>, tensor<1024x1024xf32>)
func.func @layers(%x: tensor<128x1024xf32>, %a: tensor<1024x1024xf32>, %b: tensor<1024x1024xf32>, %c: tensor<1024x1024xf32>, %d: tensor<1024x1024xf32>) -> tensor<128x1024xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<128x1024xf32>
  %z = linalg.fill ins(%zero : f32) outs(%e : tensor<128x1024xf32>) -> tensor<128x1024xf32>
  %p = linalg.matmul ins(%x, %a : tensor<128x1024xf32>, tensor<1024x1024xf32>) outs(%z : tensor<128x1024xf32>) -> tensor<128x1024xf32>
  %t = math.tanh %p : tensor<128x1024xf32>
  %q = linalg.matmul ins(%t, %b : tensor<128x1024xf32>, tensor<1024x1024xf32>) outs(%z : tensor<128x1024xf32>) -> tensor<128x1024xf32>
  %u = math.tanh %q : tensor<128x1024xf32>
  %r = linalg.matmul ins(%u, %c : tensor<128x1024xf32>, tensor<1024x1024xf32>) outs(%z : tensor<128x1024xf32>) -> tensor<128x1024xf32>
  %v = math.tanh %r : tensor<128x1024xf32>
  %s = linalg.matmul ins(%v, %d : tensor<128x1024xf32>, tensor<1024x1024xf32>) outs(%z : tensor<128x1024xf32>) -> tensor<128x1024xf32>
  return %s : tensor<128x1024xf32>
}

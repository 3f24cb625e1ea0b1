// The estimate of single operations proposes the features between layers, whose
// weights are larger than the batch; the predicted step of the batch, which
// exchanges nothing, is shorter, so that the batch is cut.
// RUN: baechi-opt %s --baechi-split="pieces=2 reductions=true stored=true" --remarks-filter=baechi-split -o /dev/null 2>&1 | FileCheck %s --check-prefix=PROPOSED
// RUN: baechi-run %s --machine=host:2 --splits=any --costs=roofline --steps=1 | FileCheck %s

// PROPOSED: [Passed] split | {{.*}} Pieces=512+512
// PROPOSED: [Passed] split | {{.*}} Pieces=512+512

// CHECK: pieces {{.*}} operations cut along 1 class of dimensions
// CHECK-NEXT: dimension 0 of argument 0: 2 pieces of 48,
// CHECK: outputs    equal the single device's, bit for bit
func.func @layers(%x: tensor<96x1024xf32>, %a: tensor<1024x256xf32>, %b: tensor<256x1024xf32>, %c: tensor<1024x768xf32>) -> tensor<96x768xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<96x256xf32>
  %z = linalg.fill ins(%zero : f32) outs(%e : tensor<96x256xf32>) -> tensor<96x256xf32>
  %p = linalg.matmul ins(%x, %a : tensor<96x1024xf32>, tensor<1024x256xf32>) outs(%z : tensor<96x256xf32>) -> tensor<96x256xf32>
  %t = math.tanh %p : tensor<96x256xf32>
  %f = tensor.empty() : tensor<96x1024xf32>
  %y = linalg.fill ins(%zero : f32) outs(%f : tensor<96x1024xf32>) -> tensor<96x1024xf32>
  %q = linalg.matmul ins(%t, %b : tensor<96x256xf32>, tensor<256x1024xf32>) outs(%y : tensor<96x1024xf32>) -> tensor<96x1024xf32>
  %u = math.tanh %q : tensor<96x1024xf32>
  %g = tensor.empty() : tensor<96x768xf32>
  %w = linalg.fill ins(%zero : f32) outs(%g : tensor<96x768xf32>) -> tensor<96x768xf32>
  %r = linalg.matmul ins(%u, %c : tensor<96x1024xf32>, tensor<1024x768xf32>) outs(%w : tensor<96x768xf32>) -> tensor<96x768xf32>
  return %r : tensor<96x768xf32>
}

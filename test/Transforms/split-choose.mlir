// The pass chooses what to cut: the rows of two layers, which save the most,
// and not the columns between them, which would be put together again.
// RUN: baechi-opt %s --baechi-split=pieces=2 --remarks-filter=baechi-split 2>&1 | FileCheck %s
// RUN: baechi-opt %s --baechi-split=pieces=3 --remarks-filter=baechi-split 2>&1 | FileCheck %s --check-prefix=THREE
// RUN: baechi-opt %s --baechi-split=pieces=1000 | FileCheck %s --check-prefix=NONE
// RUN: baechi-opt %s --baechi-split | FileCheck %s --check-prefix=NONE
// RUN: baechi-opt %s --baechi-split="pieces=2 forced=true reductions=true" | FileCheck %s --check-prefix=FORCED

// CHECK: [Passed] split | {{.*}} Pieces=64+64
// CHECK-NOT: [Passed]
// CHECK-COUNT-4: linalg.matmul {{.*}} -> tensor<64x256xf32>
// CHECK-NOT: linalg.matmul
// THREE: [Passed] split | {{.*}} Pieces=43+43+42
// NONE-COUNT-2: linalg.matmul {{.*}} -> tensor<128x256xf32>
// NONE-NOT: linalg.matmul
// FORCED-NOT: linalg.matmul {{.*}}-> tensor<128x256xf32>
func.func @step(%x: tensor<128x256xf32>, %a: tensor<256x256xf32>, %b: tensor<256x256xf32>) -> tensor<128x256xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<128x256xf32>
  %z = linalg.fill ins(%zero : f32) outs(%e : tensor<128x256xf32>) -> tensor<128x256xf32>
  %p = linalg.matmul ins(%x, %a : tensor<128x256xf32>, tensor<256x256xf32>) outs(%z : tensor<128x256xf32>) -> tensor<128x256xf32>
  %t = math.tanh %p : tensor<128x256xf32>
  %q = linalg.matmul ins(%t, %b : tensor<128x256xf32>, tensor<256x256xf32>) outs(%z : tensor<128x256xf32>) -> tensor<128x256xf32>
  return %q : tensor<128x256xf32>
}

// What no class of so many pieces takes is cut in fewer.
// RUN: baechi-opt %s --baechi-split="pieces=4 rest-pieces=2" | FileCheck %s
// RUN: baechi-opt %s --baechi-split=pieces=4 | FileCheck %s --check-prefix=WHOLE

// CHECK: tensor.extract_slice %arg0[0, 0] [1, 4000000]
// CHECK: tensor.extract_slice %arg0[1, 0] [1, 4000000]
// CHECK-COUNT-2: linalg.reduce
// WHOLE-NOT: tensor.extract_slice
// WHOLE: linalg.reduce
func.func @rest(%x: tensor<2x4000000xf32>) -> tensor<2xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<2xf32>
  %z = linalg.fill ins(%zero : f32) outs(%e : tensor<2xf32>) -> tensor<2xf32>
  %s = linalg.reduce { arith.addf } ins(%x : tensor<2x4000000xf32>) outs(%z : tensor<2xf32>) dimensions = [1]
  return %s : tensor<2xf32>
}

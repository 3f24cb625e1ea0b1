// RUN: baechi-opt %s --verify-diagnostics --baechi-split="pieces=8 reductions=true chained=true needs-batch=true"
// RUN: sed 's/%y: tensor<1024x64xf32>)/%y: tensor<1024x64xf32> {baechi.split = #baechi.split<dim = 0, sizes = [512, 512]>})/' %s > %t.mlir
// RUN: baechi-opt %t.mlir --baechi-split="pieces=8 reductions=true chained=true needs-batch=true" | FileCheck %s
// What a limit of memory tries is not asked for: little time may be much memory.
// RUN: baechi-opt %s --baechi-split="pieces=8 reductions=true chained=true" | FileCheck %s --check-prefix=TRIED
// TRIED-COUNT-8: linalg.matmul {{.*}} outs(%{{.*}} : tensor<128x64xf32>)
// CHECK-COUNT-2: linalg.matmul {{.*}} outs(%{{.*}} : tensor<512x64xf32>)

// The batch is in a loop; what is beside it is cut only where it is named.
// expected-error@below {{nothing is as heavy as a batch that could be cut in 8 micro-batches: what can be is 0 % of the step; compile it whole (splits=none), or name what is to be cut (split); a loop goes through argument 1 ('x') and is one operator}}
func.func @examples(%w: tensor<64x64xf32> {baechi.updated_by = 0 : i64}, %x: tensor<4000x64x64xf32> {baechi.name = "x"}, %y: tensor<1024x64xf32>) -> (tensor<64x64xf32>, tensor<1024x64xf32>) {
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  %n = arith.constant 4000 : index
  // expected-note@below {{this loop reads argument 1 ('x') step by step}}
  %0 = scf.for %i = %zero to %n step %one iter_args(%sum = %w) -> tensor<64x64xf32> {
    %row = tensor.extract_slice %x[%i, 0, 0] [1, 64, 64] [1, 1, 1] : tensor<4000x64x64xf32> to tensor<64x64xf32>
    %c = arith.constant 0.0 : f32
    %e = tensor.empty() : tensor<64x64xf32>
    %f = linalg.fill ins(%c : f32) outs(%e : tensor<64x64xf32>) -> tensor<64x64xf32>
    %p = linalg.matmul ins(%sum, %row : tensor<64x64xf32>, tensor<64x64xf32>) outs(%f : tensor<64x64xf32>) -> tensor<64x64xf32>
    scf.yield %p : tensor<64x64xf32>
  }
  %ze = tensor.empty() : tensor<1024x64xf32>
  %zero_f = arith.constant 0.0 : f32
  %zf = linalg.fill ins(%zero_f : f32) outs(%ze : tensor<1024x64xf32>) -> tensor<1024x64xf32>
  %z = linalg.matmul ins(%y, %w : tensor<1024x64xf32>, tensor<64x64xf32>) outs(%zf : tensor<1024x64xf32>) -> tensor<1024x64xf32>
  return %0, %z : tensor<64x64xf32>, tensor<1024x64xf32>
}

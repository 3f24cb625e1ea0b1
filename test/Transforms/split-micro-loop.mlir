// RUN: baechi-opt %s --verify-diagnostics --baechi-split="pieces=8 reductions=true chained=true"
// RUN: sed 's/%y: tensor<1024x512xf32>)/%y: tensor<1024x512xf32> {baechi.split = #baechi.split<dim = 0, sizes = [512, 512]>})/' %s > %t.mlir
// RUN: baechi-opt %t.mlir --baechi-split="pieces=8 reductions=true chained=true" | FileCheck %s
// CHECK-COUNT-2: math.exp {{.*}} : tensor<512x512xf32>

// The batch is in a loop; what is beside it is cut only where it is named.
// expected-error@below {{nothing is as heavy as a batch that could be cut in 8 micro-batches: what can be is 0 % of the step; compile it whole (splits=none), or name what is to be cut (split)}}
func.func @examples(%w: tensor<64x64xf32> {baechi.updated_by = 0 : i64}, %x: tensor<400x64x64xf32> {baechi.name = "x"}, %y: tensor<1024x512xf32>) -> (tensor<64x64xf32>, tensor<1024x512xf32>) {
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  %n = arith.constant 400 : index
  // expected-note@below {{this loop reads argument 1 ('x') step by step}}
  %0 = scf.for %i = %zero to %n step %one iter_args(%sum = %w) -> tensor<64x64xf32> {
    %row = tensor.extract_slice %x[%i, 0, 0] [1, 64, 64] [1, 1, 1] : tensor<400x64x64xf32> to tensor<64x64xf32>
    %c = arith.constant 0.0 : f32
    %e = tensor.empty() : tensor<64x64xf32>
    %f = linalg.fill ins(%c : f32) outs(%e : tensor<64x64xf32>) -> tensor<64x64xf32>
    %p = linalg.matmul ins(%sum, %row : tensor<64x64xf32>, tensor<64x64xf32>) outs(%f : tensor<64x64xf32>) -> tensor<64x64xf32>
    scf.yield %p : tensor<64x64xf32>
  }
  %z = math.exp %y : tensor<1024x512xf32>
  return %0, %z : tensor<64x64xf32>, tensor<1024x512xf32>
}

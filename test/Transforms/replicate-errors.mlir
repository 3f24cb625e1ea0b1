// RUN: baechi-opt %s --split-input-file --verify-diagnostics --baechi-replicate=replicas=3
// RUN: not baechi-opt %s --split-input-file --baechi-replicate=replicas=1 2>&1 | FileCheck %s --check-prefix=ONE
// ONE: error: the step can have 2 to 64 replicas, not 1

// expected-error@below {{the step has no batch to cut in 3 replicas: no dimension of an argument whose next value it does not return can be cut; name the batch's arguments (split)}}
func.func @parameters(%w: tensor<300x300xf32> {baechi.updated_by = 0 : i64}) -> tensor<300x300xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<300x300xf32>
  %z = linalg.fill ins(%zero : f32) outs(%e : tensor<300x300xf32>) -> tensor<300x300xf32>
  %y = linalg.matmul ins(%w, %w : tensor<300x300xf32>, tensor<300x300xf32>) outs(%z : tensor<300x300xf32>) -> tensor<300x300xf32>
  return %y : tensor<300x300xf32>
}

// -----

// expected-error@below {{the step is called within its module, and its arguments would become others: take what calls it away}}
func.func @called(%x: tensor<300x4xf32>) -> tensor<300x4xf32> {
  %y = math.exp %x : tensor<300x4xf32>
  return %y : tensor<300x4xf32>
}
func.func private @caller(%x: tensor<300x4xf32>) -> tensor<300x4xf32> {
  // expected-note@below {{called here}}
  %y = call @called(%x) : (tensor<300x4xf32>) -> tensor<300x4xf32>
  return %y : tensor<300x4xf32>
}

// -----

// expected-error@below {{can be cut; name the batch's arguments (split), or give a batch of at least 3 rows if 'x', of 1, is the batch}}
func.func @single(%w: tensor<300x300xf32> {baechi.updated_by = 0 : i64}, %x: tensor<1x300xf32> {baechi.name = "x"}) -> (tensor<300x300xf32>, tensor<1x300xf32>) {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<1x300xf32>
  %z = linalg.fill ins(%zero : f32) outs(%e : tensor<1x300xf32>) -> tensor<1x300xf32>
  %y = linalg.matmul ins(%x, %w : tensor<1x300xf32>, tensor<300x300xf32>) outs(%z : tensor<1x300xf32>) -> tensor<1x300xf32>
  return %w, %y : tensor<300x300xf32>, tensor<1x300xf32>
}

// -----

// expected-error@below {{, is of 256, which does not divide into 3 equal replicas: take one of 255 or 258, or name the batch's arguments (split) if it is another}}
func.func @uneven(%w: tensor<64x64xf32> {baechi.updated_by = 1 : i64}, %x: tensor<256x64xf32>) -> (tensor<256x64xf32>, tensor<64x64xf32>) {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<256x64xf32>
  %z = linalg.fill ins(%zero : f32) outs(%e : tensor<256x64xf32>) -> tensor<256x64xf32>
  // expected-note@below {{one of the operations on it}}
  %y = linalg.matmul ins(%x, %w : tensor<256x64xf32>, tensor<64x64xf32>) outs(%z : tensor<256x64xf32>) -> tensor<256x64xf32>
  return %y, %w : tensor<256x64xf32>, tensor<64x64xf32>
}

// -----

// expected-note@below {{the step}}
func.func @asked(%x: tensor<4x8xf32> {baechi.split = #baechi.split<dim = 0, sizes = [2, 2]>}) -> tensor<4x8xf32> {
  // expected-error@below {{is asked for in 2 parts of 4 elements, and there are 3 replicas, whose parts are equal}}
  %0 = math.exp %x : tensor<4x8xf32>
  return %0 : tensor<4x8xf32>
}

// -----

// expected-error@below {{the step has no batch to cut in 3 replicas}}
func.func @examples(%w: tensor<8xf32> {baechi.updated_by = 0 : i64}, %x: tensor<9x8xf32> {baechi.name = "x"}) -> tensor<8xf32> {
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  %nine = arith.constant 9 : index
  // expected-note@below {{this loop reads argument 1 ('x') step by step, and its steps follow each other: where it goes through the batch, compute that at once (in JAX, vmap for scan)}}
  %0 = scf.for %i = %zero to %nine step %one iter_args(%sum = %w) -> tensor<8xf32> {
    %row = tensor.extract_slice %x[%i, 0] [1, 8] [1, 1] : tensor<9x8xf32> to tensor<8xf32>
    %added = arith.addf %sum, %row : tensor<8xf32>
    scf.yield %added : tensor<8xf32>
  }
  return %0 : tensor<8xf32>
}

// A loop that writes a part of a tensor from outside of it: each iteration
// begins with the zeros, not with what the one before it has written.
// RUN: baechi-run %s --machine=host:1 --costs=roofline --steps=1 --outputs=%t.npz
// RUN: %python -c "import struct, zipfile; print(struct.unpack('<8f', zipfile.ZipFile('%t.npz').read('out0.npy')[-32:]))" | FileCheck %s

// CHECK: (3.0, 6.0, 9.0, 12.0, 15.0, 18.0, 21.0, 24.0)
func.func @step() -> tensor<4x2xf32> {
  %x = arith.constant dense<[[1., 2.], [3., 4.], [5., 6.], [7., 8.]]> : tensor<4x2xf32>
  %zero = arith.constant 0.0 : f32
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  %empty = tensor.empty() : tensor<4x2xf32>
  %zeros = linalg.fill ins(%zero : f32) outs(%empty : tensor<4x2xf32>) -> tensor<4x2xf32>
  %sum = scf.for %i = %c0 to %c4 step %c1 iter_args(%acc = %x) -> tensor<4x2xf32> {
    %row = tensor.extract_slice %acc[%i, 0] [1, 2] [1, 1] : tensor<4x2xf32> to tensor<1x2xf32>
    %own = tensor.empty() : tensor<1x2xf32>
    %twice = linalg.add ins(%row, %row : tensor<1x2xf32>, tensor<1x2xf32>) outs(%own : tensor<1x2xf32>) -> tensor<1x2xf32>
    %part = tensor.insert_slice %twice into %zeros[%i, 0] [1, 2] [1, 1] : tensor<1x2xf32> into tensor<4x2xf32>
    %new = tensor.empty() : tensor<4x2xf32>
    %next = linalg.add ins(%acc, %part : tensor<4x2xf32>, tensor<4x2xf32>) outs(%new : tensor<4x2xf32>) -> tensor<4x2xf32>
    scf.yield %next : tensor<4x2xf32>
  }
  return %sum : tensor<4x2xf32>
}

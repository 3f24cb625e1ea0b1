// Packed layouts are pads, reshapes and transposes: a matrix of 3 x 5 in tiles
// of 2 x 2, with 9 where there is nothing, and back.
// RUN: baechi-opt %s --baechi-form-kernels | FileCheck %s --implicit-check-not=linalg.pack --implicit-check-not=linalg.unpack
// RUN: %python -c "import numpy as np; np.savez('%t.in.npz', arg0=np.arange(15, dtype=np.float32).reshape(3, 5))"
// RUN: baechi-run %s --machine=host:2 --costs=roofline --steps=1 --inputs=%t.in.npz --outputs=%t.npz
// RUN: %python -c "import numpy as np; f = np.load('%t.npz'); a = np.arange(15).reshape(3, 5); p = np.pad(a, ((0, 1), (0, 1)), constant_values=9).reshape(2, 2, 3, 2).transpose(2, 0, 3, 1); print((f['out0'] == p).all(), (f['out1'] == a).all())" | FileCheck %s --check-prefix=RIGHT

// CHECK: func.func @step
// RIGHT: True True
func.func @step(%a: tensor<3x5xf32>) -> (tensor<3x2x2x2xf32>, tensor<3x5xf32>) {
  %nine = arith.constant 9.0 : f32
  %to = tensor.empty() : tensor<3x2x2x2xf32>
  %packed = linalg.pack %a padding_value(%nine : f32) outer_dims_perm = [1, 0] inner_dims_pos = [1, 0] inner_tiles = [2, 2] into %to : tensor<3x5xf32> -> tensor<3x2x2x2xf32>
  %back = tensor.empty() : tensor<3x5xf32>
  %whole = linalg.unpack %packed outer_dims_perm = [1, 0] inner_dims_pos = [1, 0] inner_tiles = [2, 2] into %back : tensor<3x2x2x2xf32> -> tensor<3x5xf32>
  return %packed, %whole : tensor<3x2x2x2xf32>, tensor<3x5xf32>
}

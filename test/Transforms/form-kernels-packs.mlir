// Packed layouts are pads, reshapes and transposes: a matrix of 3 x 5 in tiles
// of 2 x 2, with 90 where there is nothing, and back.
// RUN: baechi-opt %s --baechi-form-kernels | FileCheck %s --implicit-check-not=linalg.pack --implicit-check-not=linalg.unpack
// RUN: baechi-run %s --machine=host:2 --costs=roofline --steps=1 --outputs=%t.npz
// RUN: %python -c "import struct, zipfile; f = zipfile.ZipFile('%t.npz'); print(struct.unpack('<24q', f.read('out0.npy')[-192:]), struct.unpack('<15q', f.read('out1.npy')[-120:]))" | FileCheck %s --check-prefix=RIGHT

// Tiles by columns, then rows; within a tile columns before rows.
// RIGHT: (0, 5, 1, 6, 10, 90, 11, 90, 2, 7, 3, 8, 12, 90, 13, 90, 4, 9, 90, 90, 14, 90, 90, 90) (0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14)
// CHECK: func.func @step
func.func @step() -> (tensor<3x2x2x2xi64>, tensor<3x5xi64>) {
  %e = tensor.empty() : tensor<3x5xi64>
  %a = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>], iterator_types = ["parallel", "parallel"]} outs(%e : tensor<3x5xi64>) {
  ^bb0(%out: i64):
    %five = arith.constant 5 : index
    %i = linalg.index 0 : index
    %j = linalg.index 1 : index
    %row = arith.muli %i, %five : index
    %at = arith.addi %row, %j : index
    %v = arith.index_cast %at : index to i64
    linalg.yield %v : i64
  } -> tensor<3x5xi64>
  %ninety = arith.constant 90 : i64
  %to = tensor.empty() : tensor<3x2x2x2xi64>
  %packed = linalg.pack %a padding_value(%ninety : i64) outer_dims_perm = [1, 0] inner_dims_pos = [1, 0] inner_tiles = [2, 2] into %to : tensor<3x5xi64> -> tensor<3x2x2x2xi64>
  %back = tensor.empty() : tensor<3x5xi64>
  %whole = linalg.unpack %packed outer_dims_perm = [1, 0] inner_dims_pos = [1, 0] inner_tiles = [2, 2] into %back : tensor<3x2x2x2xi64> -> tensor<3x5xi64>
  return %packed, %whole : tensor<3x2x2x2xi64>, tensor<3x5xi64>
}

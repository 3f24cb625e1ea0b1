// Positions by affine maps, as upstream's fusion and tiling write them, are
// arithmetic within the kernels.
// RUN: baechi-opt %s --baechi-form-kernels | FileCheck %s --implicit-check-not=affine.apply --implicit-check-not=affine.min
// RUN: baechi-run %s --machine=host:1 --costs=roofline --steps=1 --outputs=%t.npz
// RUN: %python -c "import struct, zipfile; print(struct.unpack('<6q', zipfile.ZipFile('%t.npz').read('out0.npy')[-48:]))" | FileCheck %s --check-prefix=RIGHT

#id = affine_map<(i) -> (i)>

// CHECK: func.func @step
// RIGHT: (1, 4, 7, 7, 7, 7)
func.func @step() -> tensor<6xi64> {
  %e = tensor.empty() : tensor<6xi64>
  %r = linalg.generic {indexing_maps = [#id], iterator_types = ["parallel"]} outs(%e : tensor<6xi64>) {
  ^bb0(%out: i64):
    %i = linalg.index 0 : index
    %j = affine.apply affine_map<(i) -> (3 * i + 1)>(%i)
    %k = affine.min affine_map<(i) -> (i, 7)>(%j)
    %v = arith.index_cast %k : index to i64
    linalg.yield %v : i64
  } -> tensor<6xi64>
  return %r : tensor<6xi64>
}

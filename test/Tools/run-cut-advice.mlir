// Where micro-batches do not help, as nothing but windows can be cut, the error
// says which cut does, where nothing is cut by itself.
// RUN: not baechi-run %s --costs=roofline --budget=0 --machine=host:1@690KiB --steps=1 --fit-memory=whole 2>&1 | FileCheck %s --check-prefix=TELLS
// RUN: not baechi-run %s --costs=roofline --budget=0 --machine=host:1@690KiB --steps=1 --fit-memory=whole --splits=any 2>&1 | FileCheck %s --check-prefix=TELLS
// RUN: baechi-run %s --costs=roofline --budget=0 --machine=host:1@690KiB --steps=1 --split=second=1:2 --split=first=1:2 | FileCheck %s --check-prefix=FITS
// TELLS: error: no placement can fit the memories
// TELLS: computing values again does not help: {{.*}} 'second' by itself needs
// TELLS-NOT: micro
// TELLS: {{^}}cut in {{[0-9]+}} pieces along dimension 1 it fits: split=second=1:
// FITS: dimension 1 of first: 2 pieces of 128
// FITS: dimension 1 of second: 2 pieces of 127
func.func @step(%x: tensor<1x258x258x1xf32>, %w: tensor<3x3x1x1xf32>) -> tensor<1x254x254x1xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<1x256x256x1xf32>
  %z = linalg.fill ins(%zero : f32) outs(%e : tensor<1x256x256x1xf32>) -> tensor<1x256x256x1xf32>
  %p = linalg.conv_2d_nhwc_hwcf ins(%x, %w : tensor<1x258x258x1xf32>, tensor<3x3x1x1xf32>) outs(%z : tensor<1x256x256x1xf32>) -> tensor<1x256x256x1xf32> loc("first")
  %e2 = tensor.empty() : tensor<1x254x254x1xf32>
  %z2 = linalg.fill ins(%zero : f32) outs(%e2 : tensor<1x254x254x1xf32>) -> tensor<1x254x254x1xf32>
  %q = linalg.conv_2d_nhwc_hwcf ins(%p, %w : tensor<1x256x256x1xf32>, tensor<3x3x1x1xf32>) outs(%z2 : tensor<1x254x254x1xf32>) -> tensor<1x254x254x1xf32> loc("second")
  return %q : tensor<1x254x254x1xf32>
}

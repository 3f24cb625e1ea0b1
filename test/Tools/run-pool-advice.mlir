// Where parameters alone are more than the device holds, the error says with
// which pool the step fits; and what it says runs.
// RUN: not baechi-run %s --costs=roofline --budget=0 --machine=host:1@40KiB --steps=1 2>%t.said
// RUN: FileCheck %s --check-prefix=TELLS --input-file=%t.said
// RUN: sed -n 's/^with a pool beside it, .* fits: \(--machine=[^ ]*\) (in Python .*$/\1/p' %t.said > %t.options
// RUN: xargs baechi-run %s --costs=roofline --budget=0 --steps=1 < %t.options | FileCheck %s --check-prefix=FITS
// TELLS: error: no placement can fit the memories
// TELLS: {{^}}with a pool beside it, where tensors wait, the step fits: --machine=host:1@40KiB+pool:[[SIZE:[0-9]+]]KiB (in Python spill_to="pool:[[SIZE]]KiB")
// FITS: of arguments live in 'pool0'

// Where a pool does not help either, or none is wanted, nothing is said of it.
// RUN: not baechi-run %s --costs=roofline --budget=0 --machine=host:1@4KiB --steps=1 2>&1 | FileCheck %s --check-prefix=NONE
// RUN: not baechi-run %s --costs=roofline --budget=0 --machine=host:1@40KiB --steps=1 --fit-memory=never 2>&1 | FileCheck %s --check-prefix=NONE
// NONE: error: no placement can fit the memories
// NONE-NOT: +pool:{{[0-9]}}
func.func @step(%x: tensor<8x64xf32>, %a: tensor<64x64xf32>, %b: tensor<64x64xf32>, %c: tensor<64x64xf32>) -> tensor<8x64xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<8x64xf32>
  %z = linalg.fill ins(%zero : f32) outs(%e : tensor<8x64xf32>) -> tensor<8x64xf32>
  %p = linalg.matmul ins(%x, %a : tensor<8x64xf32>, tensor<64x64xf32>) outs(%z : tensor<8x64xf32>) -> tensor<8x64xf32> loc("first")
  %q = linalg.matmul ins(%p, %b : tensor<8x64xf32>, tensor<64x64xf32>) outs(%z : tensor<8x64xf32>) -> tensor<8x64xf32> loc("second")
  %r = linalg.matmul ins(%q, %c : tensor<8x64xf32>, tensor<64x64xf32>) outs(%z : tensor<8x64xf32>) -> tensor<8x64xf32> loc("third")
  return %r : tensor<8x64xf32>
}

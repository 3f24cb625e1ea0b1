// An operator that needs more than the device has is cut into pieces, where the
// results keep the bits of the whole step.
// RUN: baechi-run %s --costs=roofline --budget=0 --machine=host:1 --splits=none --steps=2 --outputs=%t.whole.npz
// RUN: baechi-run %s --costs=roofline --budget=0 --machine=host:1@690KiB --splits=none --steps=2 --outputs=%t.cut.npz --json=%t.json 2>&1 | FileCheck %s
// RUN: cmp %t.whole.npz %t.cut.npz
// RUN: FileCheck %s --check-prefix=JSON --input-file=%t.json
// CHECK: note: the step as it is does not fit the memories; it is computed in pieces, as fit-memory=auto does
// CHECK: cut        'second' by itself needs {{.*}} KiB, 'host0' has 690.00 KiB; cut, the step fits:
// CHECK-NEXT: 'second' in {{[0-9]+}} pieces along dimension 1
// CHECK: results have the bits of the whole step: each sum adds the same terms in the same order
// JSON: "cut_to_fit"
// JSON: "bits": "proven"

// With exact sums, as by default, nothing needs to be compared, and with any sums may be rounded
// otherwise.
// RUN: baechi-run %s --costs=roofline --budget=0 --machine=host:1 --steps=1 --outputs=%t.exact.npz
// RUN: baechi-run %s --costs=roofline --budget=0 --machine=host:1@690KiB --steps=1 --outputs=%t.exact-cut.npz | FileCheck %s --check-prefix=EXACT
// RUN: cmp %t.exact.npz %t.exact-cut.npz
// EXACT: results have the bits of the whole step, as sums stay whole (splits=exact)
// RUN: baechi-run %s --costs=roofline --budget=0 --machine=host:1@690KiB --steps=1 --splits=any | FileCheck %s --check-prefix=ANY
// ANY: sums may be rounded in another order than in the whole step (splits=any)

// What cannot be cut is told, with what it needs.
// RUN: not baechi-run %s --costs=roofline --budget=0 --machine=host:1@64KiB --steps=1 2>&1 | FileCheck %s --check-prefix=REFUSED
// REFUSED: error: no placement can fit the memories
// REFUSED: 'second' by itself needs {{.*}} KiB
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

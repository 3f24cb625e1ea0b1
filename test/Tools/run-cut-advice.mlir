// Where micro-batches do not help, as nothing but windows can be cut, the error
// says which cut does, where nothing is cut by itself; and what it says runs.
// RUN: not baechi-run %s --costs=roofline --budget=0 --machine=host:1@690KiB --steps=1 --fit-memory=whole 2>%t.said
// RUN: FileCheck %s --check-prefix=TELLS --input-file=%t.said
// RUN: sed -n 's/^cut by \(.*\) (in Python .*) it fits$/\1/p' %t.said > %t.options
// RUN: xargs baechi-run %s --costs=roofline --budget=0 --machine=host:1@690KiB --steps=1 --fit-memory=whole < %t.options | FileCheck %s --check-prefix=FITS
// RUN: not baechi-run %s --costs=roofline --budget=0 --machine=host:1@690KiB --steps=1 --fit-memory=whole --splits=any 2>&1 | FileCheck %s --check-prefix=TELLS
// RUN: baechi-run %s --costs=roofline --budget=0 --machine=host:1@690KiB --steps=1 --split=second=1:2 --split=first=1:2 | FileCheck %s --check-prefix=FITS
// TELLS: error: no placement can fit the memories
// TELLS: computing values again does not help: {{.*}} 'second' by itself needs
// TELLS-NOT: micro
// TELLS: {{^}}cut by --split=second=1:[[N:[0-9]+]] --split=first=1:[[N]] (in Python split={"second": (1, [[N]]), "first": (1, [[N]])}) it fits
// FITS: dimension 1 of first: 2 pieces of 128
// FITS: dimension 1 of second: 2 pieces of 127

// Where no cut that is tried fits, it is said which needs least, and where.
// RUN: not baechi-run %s --costs=roofline --budget=0 --machine=host:1@300KiB --steps=1 2>%t.said
// RUN: FileCheck %s --check-prefix=LEANEST --input-file=%t.said
// RUN: sed -n 's/^no cut that was tried fits: by \(.*\) (in Python .* the step fits \([0-9]*\) bytes$/\1 --machine=host:1@\2/p' %t.said > %t.options
// RUN: xargs baechi-run %s --costs=roofline --budget=0 --steps=1 < %t.options | FileCheck %s --check-prefix=RUNS
// LEANEST: error: no placement can fit the memories
// LEANEST: {{^}}no cut that was tried fits: by --split={{.*}} (in Python split={{.*}}) '{{.*}}' by itself needs {{.*}} KiB, and the step fits {{[0-9]+}} bytes
// RUNS: dimension 1 of first: 16 pieces of 16

// Pieces in which each operator fits by itself may leave too little beside it:
// then there are more of them.
// RUN: baechi-run %s --costs=roofline --budget=0 --machine=host:1@600KiB --steps=1 | FileCheck %s --check-prefix=FINER
// FINER: dimension 1 of first: 4 pieces of 64
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

// A step that fits where values are computed again is cut where that is predicted
// to be shorter, with the same bits; not where nothing may be cut.
// RUN: baechi-run %s --costs=roofline --budget=0 --machine=host:1 --steps=1 --outputs=%t.whole.npz
// RUN: baechi-run %s --costs=roofline --budget=0 --machine=host:1@700KiB --steps=1 --outputs=%t.cut.npz --json=%t.json | FileCheck %s
// RUN: cmp %t.whole.npz %t.cut.npz
// RUN: FileCheck %s --check-prefix=JSON --input-file=%t.json
// CHECK: cut        the step as it is does not fit; {{whole|in other pieces}}, it fits and takes {{[0-9.]+}} ms; cut, it is predicted to take {{[0-9.]+}} ms:
// CHECK-NEXT: the batch in {{[0-9]+}} pieces that follow each other
// CHECK-NEXT: results have the bits of the whole step: each sum adds the same terms in the same order
// JSON: "pieces_ns": {{[0-9]+}}
// JSON: "whole_ns": {{[0-9]+}}
// RUN: baechi-run %s --costs=roofline --budget=0 --machine=host:1@700KiB --fit-memory=whole --steps=1 --outputs=%t.again.npz | FileCheck %s --check-prefix=AGAIN
// RUN: cmp %t.whole.npz %t.again.npz
// AGAIN-NOT: {{^}}cut
// AGAIN: memory     the step as it is does not fit; {{[0-9]+}} operator{{s? runs?}} again

// So it is on several devices, whose pieces compute at the same time.
// RUN: baechi-run %s --costs=roofline --budget=0 --machine=host:2@450KiB --steps=1 --outputs=%t.two.npz | FileCheck %s
// RUN: cmp %t.whole.npz %t.two.npz
// RUN: baechi-run %s --costs=roofline --budget=0 --machine=host:2@450KiB --fit-memory=whole --steps=1 --outputs=%t.two-again.npz | FileCheck %s --check-prefix=AGAIN
// RUN: cmp %t.whole.npz %t.two-again.npz
func.func @step(%x: tensor<512x64xf32>, %w: tensor<64x64xf32>) -> tensor<f32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<512x64xf32>
  %z = linalg.fill ins(%zero : f32) outs(%e : tensor<512x64xf32>) -> tensor<512x64xf32>
  %s = tensor.empty() : tensor<f32>
  %t0 = linalg.fill ins(%zero : f32) outs(%s : tensor<f32>) -> tensor<f32>
  %y1 = linalg.matmul ins(%x, %w : tensor<512x64xf32>, tensor<64x64xf32>) outs(%z : tensor<512x64xf32>) -> tensor<512x64xf32>
  %y2 = linalg.matmul ins(%y1, %w : tensor<512x64xf32>, tensor<64x64xf32>) outs(%z : tensor<512x64xf32>) -> tensor<512x64xf32>
  %y3 = linalg.matmul ins(%y2, %w : tensor<512x64xf32>, tensor<64x64xf32>) outs(%z : tensor<512x64xf32>) -> tensor<512x64xf32>
  %y4 = linalg.matmul ins(%y3, %w : tensor<512x64xf32>, tensor<64x64xf32>) outs(%z : tensor<512x64xf32>) -> tensor<512x64xf32>
  %y5 = linalg.matmul ins(%y4, %w : tensor<512x64xf32>, tensor<64x64xf32>) outs(%z : tensor<512x64xf32>) -> tensor<512x64xf32>
  %p1 = linalg.map { arith.mulf } ins(%y1, %y5 : tensor<512x64xf32>, tensor<512x64xf32>) outs(%e : tensor<512x64xf32>)
  %t1 = linalg.reduce { arith.addf } ins(%p1 : tensor<512x64xf32>) outs(%t0 : tensor<f32>) dimensions = [0, 1]
  %p2 = linalg.map { arith.mulf } ins(%y2, %y4 : tensor<512x64xf32>, tensor<512x64xf32>) outs(%e : tensor<512x64xf32>)
  %t2 = linalg.reduce { arith.addf } ins(%p2 : tensor<512x64xf32>) outs(%t1 : tensor<f32>) dimensions = [0, 1]
  %p3 = linalg.map { arith.mulf } ins(%y3, %y3 : tensor<512x64xf32>, tensor<512x64xf32>) outs(%e : tensor<512x64xf32>)
  %t3 = linalg.reduce { arith.addf } ins(%p3 : tensor<512x64xf32>) outs(%t2 : tensor<f32>) dimensions = [0, 1]
  %p4 = linalg.map { arith.mulf } ins(%y4, %y2 : tensor<512x64xf32>, tensor<512x64xf32>) outs(%e : tensor<512x64xf32>)
  %t4 = linalg.reduce { arith.addf } ins(%p4 : tensor<512x64xf32>) outs(%t3 : tensor<f32>) dimensions = [0, 1]
  %p5 = linalg.map { arith.mulf } ins(%y5, %y1 : tensor<512x64xf32>, tensor<512x64xf32>) outs(%e : tensor<512x64xf32>)
  %t5 = linalg.reduce { arith.addf } ins(%p5 : tensor<512x64xf32>) outs(%t4 : tensor<f32>) dimensions = [0, 1]
  return %t5 : tensor<f32>
}

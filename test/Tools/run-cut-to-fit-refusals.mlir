// What does not fit is cut where the results keep their bits: where they do not,
// or nobody can tell, it is refused, and the error says how to ask for it.
// RUN: split-file %s %t
// RUN: not baechi-run %t/sum.mlir --costs=roofline --budget=0 --machine=host:1@128KiB+pool:8MiB --steps=1 2>&1 | FileCheck %s --check-prefix=OTHER
// OTHER: error: the step does not fit
// OTHER: {{^}}cut by splits=micro:{{[0-9]+}} it fits, but their result 'result0' differs from the whole step's
// RUN: baechi-run %t/sum.mlir --costs=roofline --budget=0 --machine=host:1@128KiB+pool:8MiB --steps=1 --splits=any 2>&1 | FileCheck %s --check-prefix=ANY
// ANY: pieces follow each other

// RUN: not baechi-run %t/sum.mlir --costs=roofline --budget=0 --machine=host:1@128KiB+pool:8MiB --emit=so --output=%t/sum.so --host-target=x86-64-v3 2>&1 | FileCheck %s --check-prefix=ELSEWHERE
// ELSEWHERE: it fits, but whether they have its bits is not known: the program is not run here
// RUN: not baechi-run %t/none.mlir --costs=roofline --budget=0 --machine=host:1@640KiB --steps=1 2>&1 | FileCheck %s --check-prefix=NONE
// NONE: it fits, but whether they have its bits is not known: the whole step's results are no numbers
// RUN: not baechi-run %t/call.mlir --costs=roofline --budget=0 --machine=host:1@640KiB --emit=so --output=%t/call.so 2>&1 | FileCheck %s --check-prefix=CALL
// CALL: it fits, but whether they have its bits is not known: the host program computes parts of a step, which are not there yet

//--- sum.mlir
func.func @step(%x: tensor<65536xf32>) -> tensor<f32> {
  %zero = arith.constant 0.0 : f32
  %es = tensor.empty() : tensor<f32>
  %zs = linalg.fill ins(%zero : f32) outs(%es : tensor<f32>) -> tensor<f32>
  %s = linalg.reduce { arith.addf } ins(%x : tensor<65536xf32>) outs(%zs : tensor<f32>) dimensions = [0]
  return %s : tensor<f32>
}
//--- none.mlir
func.func @step(%x: tensor<4096x8xf32>, %w: tensor<8x64xf32>) -> tensor<8x64xf32> {
  %zero = arith.constant 0.0 : f32
  %minus = arith.constant dense<-1.0> : tensor<4096x64xf32>
  %e = tensor.empty() : tensor<4096x64xf32>
  %z = linalg.fill ins(%zero : f32) outs(%e : tensor<4096x64xf32>) -> tensor<4096x64xf32>
  %p = linalg.matmul ins(%x, %w : tensor<4096x8xf32>, tensor<8x64xf32>) outs(%z : tensor<4096x64xf32>) -> tensor<4096x64xf32>
  %q = arith.mulf %p, %p : tensor<4096x64xf32>
  %r = arith.subf %minus, %q : tensor<4096x64xf32>
  %s = math.sqrt %r : tensor<4096x64xf32>
  %et = tensor.empty() : tensor<8x4096xf32>
  %t = linalg.transpose ins(%x : tensor<4096x8xf32>) outs(%et : tensor<8x4096xf32>) permutation = [1, 0]
  %eg = tensor.empty() : tensor<8x64xf32>
  %zg = linalg.fill ins(%zero : f32) outs(%eg : tensor<8x64xf32>) -> tensor<8x64xf32>
  %g = linalg.matmul ins(%t, %s : tensor<8x4096xf32>, tensor<4096x64xf32>) outs(%zg : tensor<8x64xf32>) -> tensor<8x64xf32>
  return %g : tensor<8x64xf32>
}
//--- call.mlir
func.func private @show(%x: tensor<8x64xf32>) -> tensor<8x64xf32>
    attributes {baechi.host_call = {effects = "pure", ns = 50000 : i64}}
func.func @step(%x: tensor<4096x8xf32>, %w: tensor<8x64xf32>) -> tensor<8x64xf32> {
  %zero = arith.constant 0.0 : f32
  %minus = arith.constant dense<-1.0> : tensor<4096x64xf32>
  %e = tensor.empty() : tensor<4096x64xf32>
  %z = linalg.fill ins(%zero : f32) outs(%e : tensor<4096x64xf32>) -> tensor<4096x64xf32>
  %p = linalg.matmul ins(%x, %w : tensor<4096x8xf32>, tensor<8x64xf32>) outs(%z : tensor<4096x64xf32>) -> tensor<4096x64xf32>
  %q = arith.mulf %p, %p : tensor<4096x64xf32>
  %r = arith.subf %minus, %q : tensor<4096x64xf32>
  %s = math.sqrt %r : tensor<4096x64xf32>
  %et = tensor.empty() : tensor<8x4096xf32>
  %t = linalg.transpose ins(%x : tensor<4096x8xf32>) outs(%et : tensor<8x4096xf32>) permutation = [1, 0]
  %eg = tensor.empty() : tensor<8x64xf32>
  %zg = linalg.fill ins(%zero : f32) outs(%eg : tensor<8x64xf32>) -> tensor<8x64xf32>
  %g = linalg.matmul ins(%t, %s : tensor<8x4096xf32>, tensor<4096x64xf32>) outs(%zg : tensor<8x64xf32>) -> tensor<8x64xf32>
  %shown = call @show(%g) : (tensor<8x64xf32>) -> tensor<8x64xf32>
  return %shown : tensor<8x64xf32>
}

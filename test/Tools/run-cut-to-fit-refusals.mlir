// What does not fit is cut where the results keep their bits: where they do not,
// or nobody can tell, it is refused, and the error says how to ask for it.
// RUN: split-file %s %t
// RUN: not baechi-run %t/sum.mlir --costs=roofline --budget=0 --machine=host:1@128KiB+pool:8MiB --steps=1 2>&1 | FileCheck %s --check-prefix=OTHER
// OTHER: error: the step does not fit
// OTHER: {{^}}cut by --splits=micro:[[N:[0-9]+]] (in Python splits="micro:[[N]]") it fits, but the pieces' result 'result0' differs from the whole step's
// RUN: baechi-run %t/sum.mlir --costs=roofline --budget=0 --machine=host:1@128KiB+pool:8MiB --steps=1 --splits=any 2>&1 | FileCheck %s --check-prefix=ANY
// ANY: pieces follow each other

// RUN: not baechi-run %t/sum.mlir --costs=roofline --budget=0 --machine=host:1@128KiB+pool:8MiB --emit=so --output=%t/sum.so --host-target=x86-64-v3 2>&1 | FileCheck %s --check-prefix=ELSEWHERE
// ELSEWHERE: it fits, but whether the pieces have its bits is not known: the program is not run here
// RUN: not baechi-run %t/none.mlir --costs=roofline --budget=0 --machine=host:1@128KiB+pool:8MiB --steps=1 2>&1 | FileCheck %s --check-prefix=NONE
// NONE: it fits, but whether the pieces have its bits is not known: the whole step's results are no numbers
// RUN: not baechi-run %t/call.mlir --costs=roofline --budget=0 --machine=host:1@128KiB+pool:8MiB --emit=so --output=%t/call.so 2>&1 | FileCheck %s --check-prefix=CALL
// CALL: it fits, but whether the pieces have its bits is not known: the host program computes parts of a step, which are not there yet

//--- sum.mlir
func.func @step(%x: tensor<65536xf32>) -> tensor<f32> {
  %zero = arith.constant 0.0 : f32
  %es = tensor.empty() : tensor<f32>
  %zs = linalg.fill ins(%zero : f32) outs(%es : tensor<f32>) -> tensor<f32>
  %s = linalg.reduce { arith.addf } ins(%x : tensor<65536xf32>) outs(%zs : tensor<f32>) dimensions = [0]
  return %s : tensor<f32>
}
//--- none.mlir
func.func @step(%x: tensor<65536xf32>) -> tensor<f32> {
  %zero = arith.constant 0.0 : f32
  %minus = arith.constant dense<-1.0> : tensor<65536xf32>
  %q = arith.mulf %x, %x : tensor<65536xf32>
  %r = arith.subf %minus, %q : tensor<65536xf32>
  %t = math.sqrt %r : tensor<65536xf32>
  %es = tensor.empty() : tensor<f32>
  %zs = linalg.fill ins(%zero : f32) outs(%es : tensor<f32>) -> tensor<f32>
  %s = linalg.reduce { arith.addf } ins(%t : tensor<65536xf32>) outs(%zs : tensor<f32>) dimensions = [0]
  return %s : tensor<f32>
}
//--- call.mlir
func.func private @show(%x: tensor<f32>) -> tensor<f32>
    attributes {baechi.host_call = {effects = "pure", ns = 50000 : i64}}
func.func @step(%x: tensor<65536xf32>) -> tensor<f32> {
  %zero = arith.constant 0.0 : f32
  %minus = arith.constant dense<-1.0> : tensor<65536xf32>
  %q = arith.mulf %x, %x : tensor<65536xf32>
  %r = arith.subf %minus, %q : tensor<65536xf32>
  %t = math.sqrt %r : tensor<65536xf32>
  %es = tensor.empty() : tensor<f32>
  %zs = linalg.fill ins(%zero : f32) outs(%es : tensor<f32>) -> tensor<f32>
  %s = linalg.reduce { arith.addf } ins(%t : tensor<65536xf32>) outs(%zs : tensor<f32>) dimensions = [0]
  %shown = call @show(%s) : (tensor<f32>) -> tensor<f32>
  return %shown : tensor<f32>
}

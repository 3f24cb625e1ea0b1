// RUN: split-file %s %t
// RUN: not baechi-opt %t/step.mlir --baechi-annotate-costs="roofline=host:50:10" 2>&1 | FileCheck %s --check-prefix=FIELDS
// RUN: not baechi-opt %t/step.mlir --baechi-annotate-costs="roofline=host:50:10:200,gpu:0:1:1" 2>&1 | FileCheck %s --check-prefix=ZERO
// RUN: not baechi-opt %t/step.mlir --baechi-annotate-costs="profile=%t/missing.json" 2>&1 | FileCheck %s --check-prefix=MISSING
// RUN: not baechi-opt %t/step.mlir --baechi-annotate-costs="profile=%t/other.json" 2>&1 | FileCheck %s --check-prefix=OTHER
// RUN: not baechi-opt %t/step.mlir --baechi-annotate-costs="profile=%t/row.json" 2>&1 | FileCheck %s --check-prefix=ROW
// RUN: not baechi-opt %t/two.mlir --baechi-annotate-costs 2>&1 | FileCheck %s --check-prefix=TWO
// RUN: not baechi-opt %t/none.mlir --baechi-annotate-costs 2>&1 | FileCheck %s --check-prefix=NONE
// RUN: not baechi-opt %t/blocks.mlir --baechi-annotate-costs 2>&1 | FileCheck %s --check-prefix=BLOCKS
// RUN: not baechi-opt %t/dynamic.mlir --baechi-annotate-costs 2>&1 | FileCheck %s --check-prefix=DYNAMIC
// RUN: not baechi-opt %t/result.mlir --baechi-annotate-costs 2>&1 | FileCheck %s --check-prefix=RESULT

// FIELDS: error: roofline 'host:50:10' is not KIND:GFLOPS:GBS:LAUNCH_NS, like host:50:10:200
// ZERO: error: roofline 'gpu:0:1:1' is not KIND:GFLOPS:GBS:LAUNCH_NS
// MISSING: error: {{.*}}missing.json: {{.*}}No such file
// OTHER: error: {{.*}}other.json: not a baechi-profile file of version 1
// ROW: error: {{.*}}row.json: rows[0] needs 'hash', a string
// TWO: error: a program needs one public function, its step; this module has 2: @a @b
// NONE: error: a program needs one public function, its step; this module has none
// BLOCKS: error: the step has several blocks; unstructured control flow cannot be placed
// DYNAMIC: dynamic.mlir:1:{{.*}}error: argument 0 of the step has type 'tensor<?xf32>'; what can be placed are tensors and vectors of static shape and scalars, each smaller than 2^48 bytes
// RESULT: result.mlir:3:{{.*}}error: 'arith.addf' op has a result of type 'tensor<?xf32>'; what can be placed are tensors and vectors of static shape and scalars, each smaller than 2^48 bytes

//--- step.mlir
func.func @step(%x: tensor<4xf32>) -> tensor<4xf32> {
  %0 = arith.addf %x, %x : tensor<4xf32>
  return %0 : tensor<4xf32>
}
//--- other.json
{"format": "baechi-graph", "version": 1}
//--- row.json
{"format": "baechi-profile", "version": 1, "rows": [{"kernel": "a"}]}
//--- two.mlir
func.func @a() { return }
func.func @b() { return }
//--- none.mlir
func.func private @kernel() attributes {baechi.kernel} { return }
//--- blocks.mlir
func.func @step(%x: tensor<4xf32>) -> tensor<4xf32> {
  cf.br ^next
^next:
  return %x : tensor<4xf32>
}
//--- result.mlir
func.func @step(%x: tensor<4xf32>) -> tensor<?xf32> {
  %c = tensor.cast %x : tensor<4xf32> to tensor<?xf32>
  %0 = arith.addf %c, %c : tensor<?xf32>
  return %0 : tensor<?xf32>
}
//--- dynamic.mlir
func.func @step(%x: tensor<?xf32>) -> tensor<?xf32> {
  %0 = arith.addf %x, %x : tensor<?xf32>
  return %0 : tensor<?xf32>
}

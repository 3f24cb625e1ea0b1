// A module that is partitioned is neither placed nor partitioned again.
// RUN: baechi-opt %s --baechi-form-kernels --baechi-annotate-costs --baechi-place="msct machine=host:2" --baechi-partition -o %t.mlir
// RUN: not baechi-opt %t.mlir --baechi-form-kernels 2>&1 | FileCheck %s
// RUN: not baechi-opt %t.mlir --baechi-place="msct machine=host:2" 2>&1 | FileCheck %s
// RUN: not baechi-opt %t.mlir --baechi-partition 2>&1 | FileCheck %s
// RUN: not baechi-run %t.mlir --costs=roofline 2>&1 | FileCheck %s
// CHECK: error: the module is already partitioned: it holds a program for device 'host0'; give the one that was partitioned
func.func @step(%x: tensor<8xf32>) -> tensor<8xf32> {
  %e = tensor.empty() : tensor<8xf32>
  %0 = linalg.add ins(%x, %x : tensor<8xf32>, tensor<8xf32>) outs(%e : tensor<8xf32>) -> tensor<8xf32>
  return %0 : tensor<8xf32>
}

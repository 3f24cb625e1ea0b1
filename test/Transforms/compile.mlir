// From linalg on tensors to code for two devices, and on to LLVM IR.
// RUN: baechi-opt %s --baechi-compile="machine=host:2@1MiB placer=msct" -o %t
// RUN: FileCheck %s < %t
// RUN: baechi-translate %t --mlir-to-llvmir | FileCheck %s --check-prefix=LLVM

// CHECK: llvm.mlir.global external constant @baechi_program(
// CHECK-NOT: linalg.
// CHECK-NOT: tensor<
// CHECK-DAG: llvm.func @baechi_step_host0(%{{.*}}: !llvm.ptr, %{{.*}}: !llvm.ptr) -> i32
// CHECK-DAG: llvm.func @baechi_step_host1(%{{.*}}: !llvm.ptr, %{{.*}}: !llvm.ptr) -> i32

// LLVM-DAG: @baechi_program = constant
// LLVM-DAG: define i32 @baechi_step_host0(ptr %{{.*}}, ptr %{{.*}})
// LLVM-DAG: define i32 @baechi_step_host1(ptr %{{.*}}, ptr %{{.*}})
// LLVM-DAG: declare void @baechi_operator_begin(ptr, i32)

// A placement of the formed program is taken again.
// RUN: baechi-opt %s --baechi-form-kernels --baechi-annotate-costs --baechi-colocate --baechi-place="mtopo machine=host:2@1MiB budget=0" | baechi-translate --baechi-to-placement -o %t.placement
// RUN: baechi-opt %s --baechi-compile="machine=host:2@1MiB placement=%t.placement" 2>&1 | FileCheck %s
// RUN: sed s/host0/host7/ %t.placement > %t.lost
// RUN: not baechi-opt %s --baechi-compile="machine=host:2@1MiB placement=%t.lost" 2>&1 | FileCheck %s --check-prefix=LOST
// LOST: error: {{.*}}.lost puts '{{.*}}' on 'host7', which the machine does not have

// Pins by name.
// RUN: baechi-opt %s --baechi-compile="machine=host:2@1MiB pins=arg*=host1,matmul*=host1 budget=0" 2>&1 | FileCheck %s --check-prefix=PINS
// RUN: not baechi-opt %s --baechi-compile="machine=host:2@1MiB pins=arg0=host5" 2>&1 | FileCheck %s --check-prefix=NO-DEVICE
// PINS-DAG: llvm.func @baechi_step_host1(%{{.*}}: !llvm.ptr, %{{.*}}: !llvm.ptr) -> i32
// NO-DEVICE: error: pins: 'arg0=host5': the machine has no device 'host5'; its devices are host0, host1

// A wrong placer or target is found before anything runs, what else is wrong by
// the pass it goes to.
// RUN: not baechi-opt %s --baechi-compile="machine=host:2 target=tpu" --dump-pass-pipeline 2>&1 | FileCheck %s --check-prefix=EARLY
// EARLY-NOT: builtin.module
// EARLY: error: unknown target 'tpu'; known: host, cuda
// EARLY-NOT: builtin.module
// RUN: not baechi-opt %s --baechi-compile="machine=host:2 placer=fast" 2>&1 | FileCheck %s --check-prefix=PLACER
// RUN: not baechi-opt %s --baechi-compile="machine=host:2 target=tpu" 2>&1 | FileCheck %s --check-prefix=TARGET
// RUN: not baechi-opt %s --baechi-compile="machine=host:2@100" 2>&1 | FileCheck %s --check-prefix=MEMORY
// PLACER: error: unknown placer 'fast'; known: mtopo, mtopo-nonuniform, metf, msct
// TARGET: error: unknown target 'tpu'; known: host, cuda
// MEMORY: error: no placement can fit the memories: the resident bytes of all operators are 6144

func.func @step(%w: tensor<32x32xf32> {baechi.updated_by = 1 : i64}, %x: tensor<8x32xf32>, %z: tensor<8x32xf32>) -> (tensor<8x32xf32>, tensor<32x32xf32>) {
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<8x32xf32>
  %init = linalg.fill ins(%zero : f32) outs(%empty : tensor<8x32xf32>) -> tensor<8x32xf32>
  %y = linalg.matmul ins(%x, %w : tensor<8x32xf32>, tensor<32x32xf32>) outs(%init : tensor<8x32xf32>) -> tensor<8x32xf32>
  %next = linalg.add ins(%w, %w : tensor<32x32xf32>, tensor<32x32xf32>) outs(%w : tensor<32x32xf32>) -> tensor<32x32xf32>
  %sum = linalg.add ins(%y, %z : tensor<8x32xf32>, tensor<8x32xf32>) outs(%empty : tensor<8x32xf32>) -> tensor<8x32xf32>
  return %sum, %next : tensor<8x32xf32>, tensor<32x32xf32>
}

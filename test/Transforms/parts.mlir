// What is put together of tensors in one piece each is where they are written.
// RUN: baechi-opt %s --baechi-form-kernels --baechi-annotate-costs --baechi-place="single machine=host:1" --baechi-partition --baechi-plan-memory -o %t.mlir
// RUN: FileCheck %s < %t.mlir
// RUN: baechi-opt %t.mlir --baechi-verify-partitioned --baechi-lower-kernels --baechi-lower="target=host prefix=p" | FileCheck %s --check-prefix=CODE

// The argument takes 64 bytes. The kernel writes its results to the front of the
// whole, one behind the other; the argument, which lies elsewhere, is copied.
// CHECK: func.func private @insert_slice_48
// CHECK-SAME: baechi.parts = array<i64: 0, 64, 128>
// CHECK: module @host0 attributes {baechi.arena = #baechi.arena<bytes = 256,
// CHECK: func.func @step(
// CHECK: %[[P:.*]]:2 = call @exp_16({{.*}}baechi.offset = array<i64: 64, 128>
// CHECK: call @insert_slice_48(%[[P]]#0, %[[P]]#1, %arg0){{.*}}baechi.offset = array<i64: 64>

// CODE-LABEL: llvm.func @p_step_host0(
// CODE: llvm.call @baechi.kernel.exp_16
// CODE-NOT: llvm.call @baechi.kernel.insert
// CODE: "llvm.intr.memcpy"
// CODE-NOT: "llvm.intr.memcpy"
// CODE: llvm.return
func.func @step(%x: tensor<16xf32>) -> tensor<48xf32> {
  %e = tensor.empty() : tensor<16xf32>
  %a = linalg.exp ins(%x : tensor<16xf32>) outs(%e : tensor<16xf32>) -> tensor<16xf32>
  %b = linalg.exp ins(%a : tensor<16xf32>) outs(%e : tensor<16xf32>) -> tensor<16xf32>
  %w = tensor.empty() : tensor<48xf32>
  %0 = tensor.insert_slice %a into %w[0] [16] [1] : tensor<16xf32> into tensor<48xf32>
  %1 = tensor.insert_slice %b into %0[16] [16] [1] : tensor<16xf32> into tensor<48xf32>
  %2 = tensor.insert_slice %x into %1[32] [16] [1] : tensor<16xf32> into tensor<48xf32>
  return %2 : tensor<48xf32>
}

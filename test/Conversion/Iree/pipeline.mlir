// From linalg on tensors to IREE's input for two devices: two branches of
// products that meet.
// RUN: baechi-opt %s --baechi-form-kernels=row-loops=false --baechi-annotate-costs --baechi-colocate --baechi-place="msct machine=host:2@64MiB" --baechi-verify-placed --baechi-export-iree | FileCheck %s --implicit-check-not=baechi.
// RUN: baechi-opt %s --pass-pipeline='builtin.module(baechi-form-kernels{row-loops=false},baechi-annotate-costs,baechi-place{placer=single machine=host:2@64MiB},baechi-export-iree{devices=host=cuda})' | FileCheck %s --check-prefix=SINGLE

// CHECK-COUNT-2: "util.global"() <{initial_value = #hal.device.alias<"local"
// CHECK: func.func @step(
// CHECK-COUNT-2: "flow.tensor.transfer"(
// CHECK: "flow.tensor.barrier"(
// CHECK: call @{{.*}}matmul
// CHECK: return
// CHECK: func.func private @{{.*}}matmul

// SINGLE: #hal.device.alias<"cuda"[1]>
// SINGLE-NOT: flow.tensor
func.func @step(%x: tensor<512x512xf32>) -> tensor<512x512xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<512x512xf32>
  %z = linalg.fill ins(%zero : f32) outs(%e : tensor<512x512xf32>) -> tensor<512x512xf32>
  %p1 = linalg.matmul ins(%x, %x : tensor<512x512xf32>, tensor<512x512xf32>) outs(%z : tensor<512x512xf32>) -> tensor<512x512xf32>
  %p2 = linalg.matmul ins(%p1, %p1 : tensor<512x512xf32>, tensor<512x512xf32>) outs(%z : tensor<512x512xf32>) -> tensor<512x512xf32>
  %q0 = linalg.exp ins(%x : tensor<512x512xf32>) outs(%e : tensor<512x512xf32>) -> tensor<512x512xf32>
  %q1 = linalg.matmul ins(%q0, %x : tensor<512x512xf32>, tensor<512x512xf32>) outs(%z : tensor<512x512xf32>) -> tensor<512x512xf32>
  %q2 = linalg.matmul ins(%q1, %q1 : tensor<512x512xf32>, tensor<512x512xf32>) outs(%z : tensor<512x512xf32>) -> tensor<512x512xf32>
  %r = linalg.matmul ins(%p2, %q2 : tensor<512x512xf32>, tensor<512x512xf32>) outs(%z : tensor<512x512xf32>) -> tensor<512x512xf32>
  return %r : tensor<512x512xf32>
}

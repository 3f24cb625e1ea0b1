// Host calls take what they say, on host devices alone, and are lowered to calls
// of the runtime, in their order.
// RUN: baechi-opt %s --baechi-form-kernels --baechi-annotate-costs | FileCheck %s --check-prefix=COST
// RUN: baechi-opt %s --baechi-compile="machine=host:2 placer=metf target=host" | FileCheck %s

// COST: call @show({{.*}}) {baechi.cost = #baechi.cost<time_ns = {host = 50000}, scratch = 0>}

// CHECK-DAG: llvm.mlir.global internal constant @[[SHOW:.*host_call.*1]]("show\00")
// CHECK-DAG: llvm.mlir.global internal constant @[[KEEP:.*host_call.*2]]("keep\00")
// CHECK: llvm.mlir.addressof @[[SHOW]]
// CHECK: %[[STATUS:.*]] = llvm.call @baechi_host_call
// CHECK: llvm.icmp "ne" %[[STATUS]]
// CHECK: llvm.mlir.addressof @[[KEEP]]
// CHECK: llvm.call @baechi_host_call
// CHECK: llvm.func @baechi_host_call(!llvm.ptr, !llvm.ptr, !llvm.ptr) -> i32
func.func private @show(tensor<4xf32>)
    attributes {baechi.host_call = {effects = "ordered", ns = 50000 : i64}}
func.func private @keep(tensor<4xf32>)
    attributes {baechi.host_call = {effects = "ordered", ns = 50000 : i64}}
func.func @step(%a: tensor<4xf32>) -> tensor<4xf32> {
  call @show(%a) : (tensor<4xf32>) -> ()
  %e = tensor.empty() : tensor<4xf32>
  %y = linalg.exp ins(%a : tensor<4xf32>) outs(%e : tensor<4xf32>) -> tensor<4xf32>
  call @keep(%y) : (tensor<4xf32>) -> ()
  return %y : tensor<4xf32>
}

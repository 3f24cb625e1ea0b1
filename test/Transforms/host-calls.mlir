// A declared function with baechi.host_call is an operator without code.
// RUN: baechi-opt %s --baechi-form-kernels --split-input-file | FileCheck %s
// RUN: baechi-opt %s --split-input-file | baechi-opt --split-input-file | FileCheck %s --check-prefix=ROUND

// ROUND-DAG: func.func private @solve(tensor<16x16xf32>, tensor<16xf32>) -> tensor<16xf32> attributes {baechi.host_call = {effects = "pure", ns = 70000 : i64}}
// ROUND-DAG: func.func private @show(tensor<16xf32>) attributes {baechi.host_call = {effects = "ordered", ns = 50000 : i64}}

// CHECK-DAG: func.func private @solve({{.*}}) -> tensor<16xf32> attributes {baechi.host_call = {effects = "pure", ns = 70000 : i64}, baechi.kernel}
// CHECK-DAG: func.func private @show({{.*}}) attributes {baechi.host_call = {effects = "ordered", ns = 50000 : i64}, baechi.kernel}
// CHECK-LABEL: func.func @step
// CHECK-SAME: (%[[A:.*]]: tensor<16x16xf32>, %[[B:.*]]: tensor<2x16xf32>)
// The first call reads a part of an argument in place.
// CHECK: %[[ROW:.*]] = tensor.extract_slice %[[B]][1, 0] [1, 16] [1, 1]
// CHECK: %[[X:.*]] = call @solve(%[[A]], %[[ROW]])
// A constant has no place: a kernel makes one.
// CHECK-DAG: %[[ONES:.*]] = call @{{.*}}() : () -> tensor<16xf32>
// CHECK-DAG: call @show(%[[ONES]])
// CHECK: call @show(%[[X]])
// CHECK: return
func.func private @solve(tensor<16x16xf32>, tensor<16xf32>) -> tensor<16xf32>
    attributes {baechi.host_call = {effects = "pure", ns = 70000 : i64}}
func.func private @show(tensor<16xf32>)
    attributes {baechi.host_call = {effects = "ordered", ns = 50000 : i64}}
func.func @step(%a: tensor<16x16xf32>, %b: tensor<2x16xf32>) -> tensor<16xf32> {
  %row = tensor.extract_slice %b[1, 0] [1, 16] [1, 1] : tensor<2x16xf32> to tensor<16xf32>
  %x = call @solve(%a, %row) : (tensor<16x16xf32>, tensor<16xf32>) -> tensor<16xf32>
  %ones = arith.constant dense<1.0> : tensor<16xf32>
  call @show(%ones) : (tensor<16xf32>) -> ()
  call @show(%x) : (tensor<16xf32>) -> ()
  %e = tensor.empty() : tensor<16xf32>
  %y = linalg.add ins(%x, %ones : tensor<16xf32>, tensor<16xf32>) outs(%e : tensor<16xf32>) -> tensor<16xf32>
  return %y : tensor<16xf32>
}

// -----

// What reads a result of no elements is no part of the call.
// CHECK-LABEL: func.func @nothing
// CHECK: %[[X:.*]] = call @host(%{{.*}}) : (tensor<0x3xf32>) -> tensor<0x3xf32>
// CHECK: %[[Y:.*]] = call @{{.*}}(%[[X]]
// CHECK: return %[[Y]]
func.func private @host(tensor<0x3xf32>) -> tensor<0x3xf32>
    attributes {baechi.host_call = {effects = "pure", ns = 50000 : i64}}
func.func @nothing(%a: tensor<0x3xf32>) -> tensor<0x3xf32> {
  %x = call @host(%a) : (tensor<0x3xf32>) -> tensor<0x3xf32>
  %y = arith.addf %x, %a : tensor<0x3xf32>
  return %y : tensor<0x3xf32>
}

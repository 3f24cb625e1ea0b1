// What a step calls becomes part of it, and what nothing calls goes; kernels stay.
// RUN: split-file %s %t
// RUN: baechi-opt %t/calls.mlir --baechi-inline-step | FileCheck %s --check-prefix=CALLS
// RUN: baechi-opt %t/kernels.mlir --baechi-inline-step | FileCheck %s --check-prefix=KERNELS
// RUN: not baechi-opt %t/two.mlir --baechi-inline-step 2>&1 | FileCheck %s --check-prefix=TWO

// CALLS: func.func @step(%[[X:.*]]: tensor<8xf32>)
// CALLS-NEXT: %[[A:.*]] = arith.addf %[[X]], %[[X]]
// CALLS-NEXT: %[[B:.*]] = arith.mulf %[[A]], %[[A]]
// CALLS-NEXT: return %[[B]]
// CALLS-NOT: func.func

// KERNELS: call @twice
// KERNELS: func.func private @twice
// KERNELS-NOT: func.func

// TWO: error: a program needs one public function, its step; this module has 2: @a @b

//--- calls.mlir
func.func @step(%x: tensor<8xf32>) -> tensor<8xf32> {
  %0 = call @twice(%x) : (tensor<8xf32>) -> tensor<8xf32>
  %f = func.constant @square : (tensor<8xf32>) -> tensor<8xf32>
  %1 = func.call_indirect %f(%0) : (tensor<8xf32>) -> tensor<8xf32>
  return %1 : tensor<8xf32>
}
func.func private @twice(%x: tensor<8xf32>) -> tensor<8xf32> {
  %0 = arith.addf %x, %x : tensor<8xf32>
  return %0 : tensor<8xf32>
}
func.func private @square(%x: tensor<8xf32>) -> tensor<8xf32> {
  %0 = arith.mulf %x, %x : tensor<8xf32>
  return %0 : tensor<8xf32>
}
func.func private @unused(%x: tensor<8xf32>) -> tensor<8xf32> {
  return %x : tensor<8xf32>
}

//--- kernels.mlir
func.func @step(%x: tensor<8xf32>) -> tensor<8xf32> {
  %0 = call @twice(%x) : (tensor<8xf32>) -> tensor<8xf32>
  return %0 : tensor<8xf32>
}
func.func private @twice(%x: tensor<8xf32>) -> tensor<8xf32> attributes {baechi.kernel} {
  %0 = arith.addf %x, %x : tensor<8xf32>
  return %0 : tensor<8xf32>
}
func.func private @unused(%x: tensor<8xf32>) -> tensor<8xf32> attributes {baechi.kernel} {
  return %x : tensor<8xf32>
}

//--- two.mlir
func.func @a(%x: tensor<8xf32>) -> tensor<8xf32> {
  return %x : tensor<8xf32>
}
func.func @b(%x: tensor<8xf32>) -> tensor<8xf32> {
  return %x : tensor<8xf32>
}

// What little follows a reduction goes into its kernel, and the report.
// RUN: baechi-opt %s --baechi-form-kernels --split-input-file | FileCheck %s
// RUN: baechi-opt %s --baechi-form-kernels="report=true" --split-input-file 2>&1 >/dev/null | FileCheck %s --check-prefix=REPORT
// RUN: baechi-opt %s --baechi-form-kernels --split-input-file --remarks-filter-analyse=baechi-form-kernels 2>&1 | FileCheck %s --check-prefix=REMARK

// A bias: its gradient is a sum over columns, its update reads the bias alone,
// so that it may be computed in place. The product is by another library.

// REMARK: FormKernels | Category:baechi-form-kernels | BytesAfter=[[#]], BytesBefore=[[#]], Kernels=2, OperatorsAfter=2, OperatorsBefore=4

// CHECK-LABEL: func.func @bias(
// CHECK-NEXT: %[[G:.*]] = call @matmul_64x32x8(
// CHECK-NEXT: %[[B:.*]] = call @sum_mul_sub_64x32(%[[G]], %{{.*}})
// CHECK-NEXT: return %[[B]]
// CHECK: func.func private @sum_mul_sub_64x32(%[[G:.*]]: tensor<64x32xf32>, %[[B:.*]]: tensor<32xf32>) -> (tensor<32xf32> {baechi.may_alias = array<i64: 1>})
// CHECK: %[[S:.*]] = linalg.generic {{.*}} ins(%[[G]] :
// CHECK: %[[R:.*]] = linalg.generic {{.*}} ins(%[[B]], %[[S]] :
// CHECK: return %[[R]]

// REPORT: [[#@LINE+1]]:1: remark: 4 operators that move 0.03 MB a step became 2 calls of 2 distinct kernels that move 0.02 MB
func.func @bias(%x: tensor<64x8xf32>, %w: tensor<8x32xf32>, %b: tensor<32xf32>) -> tensor<32xf32> {
  %zero = arith.constant 0.0 : f32
  %rate = arith.constant dense<0.1> : tensor<32xf32>
  %e0 = tensor.empty() : tensor<64x32xf32>
  %f0 = linalg.fill ins(%zero : f32) outs(%e0 : tensor<64x32xf32>) -> tensor<64x32xf32>
  %g = linalg.matmul ins(%x, %w : tensor<64x8xf32>, tensor<8x32xf32>) outs(%f0 : tensor<64x32xf32>) -> tensor<64x32xf32>
  %e1 = tensor.empty() : tensor<32xf32>
  %f1 = linalg.fill ins(%zero : f32) outs(%e1 : tensor<32xf32>) -> tensor<32xf32>
  %s = linalg.reduce { arith.addf } ins(%g : tensor<64x32xf32>) outs(%f1 : tensor<32xf32>) dimensions = [0]
  %d = arith.mulf %s, %rate : tensor<32xf32>
  %r = arith.subf %b, %d : tensor<32xf32>
  return %r : tensor<32xf32>
}

// -----

// A mean, and the largest element beside it. What is as large as the reduction
// is a kernel of its own, and so is what another reduction leads to.

// REMARK: Kernels=3, OperatorsAfter=3

// CHECK-LABEL: func.func @mean(
// CHECK-NEXT: %[[S:.*]]:2 = call @sum_div_4096(%{{.*}}) : (tensor<4096xf32>) -> (tensor<f32>, tensor<f32>)
// CHECK-NEXT: %[[M:.*]] = call @mul_4096(%{{.*}}, %[[S]]#0)
// CHECK-NEXT: %[[P:.*]] = call @max_div_add_4096(%[[M]], %[[S]]#0)
// CHECK-NEXT: return %[[S]]#1, %[[M]], %[[P]]

// REPORT: [[#@LINE+1]]:1: remark: {{.*}} became 3 calls of 3 distinct kernels
func.func @mean(%x: tensor<4096xf32>) -> (tensor<f32>, tensor<4096xf32>, tensor<f32>) {
  %zero = arith.constant dense<0.0> : tensor<f32>
  %low = arith.constant dense<0xFF800000> : tensor<f32>
  %count = arith.constant dense<4096.0> : tensor<f32>
  %s = linalg.reduce { arith.addf } ins(%x : tensor<4096xf32>) outs(%zero : tensor<f32>) dimensions = [0]
  %mean = arith.divf %s, %count : tensor<f32>
  %e = tensor.empty() : tensor<4096xf32>
  %b = linalg.broadcast ins(%s : tensor<f32>) outs(%e : tensor<4096xf32>) dimensions = [0]
  %y = arith.mulf %x, %b : tensor<4096xf32>
  %m = linalg.reduce { arith.maximumf } ins(%y : tensor<4096xf32>) outs(%low : tensor<f32>) dimensions = [0]
  %p = arith.addf %m, %mean : tensor<f32>
  return %mean, %y, %p : tensor<f32>, tensor<4096xf32>, tensor<f32>
}

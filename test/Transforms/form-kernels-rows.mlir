// Operations over the same rows are one kernel.
// RUN: baechi-opt %s --baechi-form-kernels --split-input-file | FileCheck %s

#full = affine_map<(r, c) -> (r, c)>
#row = affine_map<(r, c) -> (r)>

// Softmax: a loop over rows; within it each operation computes one row, and the
// row of the result is inserted last.

// CHECK-LABEL: func.func @softmax(
// CHECK-NEXT: %[[Y:.*]] = call @softmax_32x64(%{{.*}}) : (tensor<32x64xf32>) -> tensor<32x64xf32>
// CHECK-NEXT: return %[[Y]]
// CHECK: func.func private @softmax_32x64(%[[X:.*]]: tensor<32x64xf32>) -> tensor<32x64xf32> attributes {baechi.kernel}
// CHECK: %[[OUT:.*]] = tensor.empty() : tensor<32x64xf32>
// CHECK: scf.for %[[R:.*]] = %{{.*}} to %{{.*}} step %{{.*}} iter_args(%[[ALL:.*]] = %[[OUT]]) -> (tensor<32x64xf32>) {
// CHECK: linalg.generic {{.*}} outs({{.*}} : tensor<1xf32>)
// CHECK: arith.maximumf
// CHECK: math.exp
// CHECK: linalg.generic {{.*}} outs({{.*}} : tensor<1x64xf32>)
// CHECK: arith.divf
// CHECK: %[[NEXT:.*]] = tensor.insert_slice %{{.*}} into %[[ALL]][%[[R]], 0] [1, 64] [1, 1]
// CHECK-NEXT: scf.yield %[[NEXT]]
// CHECK-NOT: func.func
func.func @softmax(%x: tensor<32x64xf32>) -> tensor<32x64xf32> {
  %zero = arith.constant 0.0 : f32
  %low = arith.constant 0xFF800000 : f32
  %e0 = tensor.empty() : tensor<32xf32>
  %e1 = tensor.empty() : tensor<32x64xf32>
  %f0 = linalg.fill ins(%low : f32) outs(%e0 : tensor<32xf32>) -> tensor<32xf32>
  %max = linalg.generic {indexing_maps = [#full, #row], iterator_types = ["parallel", "reduction"]}
      ins(%x : tensor<32x64xf32>) outs(%f0 : tensor<32xf32>) {
  ^bb0(%in: f32, %out: f32):
    %m = arith.maximumf %in, %out : f32
    linalg.yield %m : f32
  } -> tensor<32xf32>
  %exp = linalg.generic {indexing_maps = [#full, #row, #full], iterator_types = ["parallel", "parallel"]}
      ins(%x, %max : tensor<32x64xf32>, tensor<32xf32>) outs(%e1 : tensor<32x64xf32>) {
  ^bb0(%in: f32, %m: f32, %out: f32):
    %s = arith.subf %in, %m : f32
    %e = math.exp %s : f32
    linalg.yield %e : f32
  } -> tensor<32x64xf32>
  %f1 = linalg.fill ins(%zero : f32) outs(%e0 : tensor<32xf32>) -> tensor<32xf32>
  %sum = linalg.generic {indexing_maps = [#full, #row], iterator_types = ["parallel", "reduction"]}
      ins(%exp : tensor<32x64xf32>) outs(%f1 : tensor<32xf32>) {
  ^bb0(%in: f32, %out: f32):
    %a = arith.addf %in, %out : f32
    linalg.yield %a : f32
  } -> tensor<32xf32>
  %y = linalg.generic {indexing_maps = [#full, #row, #full], iterator_types = ["parallel", "parallel"]}
      ins(%exp, %sum : tensor<32x64xf32>, tensor<32xf32>) outs(%e1 : tensor<32x64xf32>) {
  ^bb0(%in: f32, %s: f32, %out: f32):
    %d = arith.divf %in, %s : f32
    linalg.yield %d : f32
  } -> tensor<32x64xf32>
  return %y : tensor<32x64xf32>
}

// -----

// An update with momentum: elementwise operations with several results become
// one linalg.generic, and each result may be computed in place.

// CHECK-LABEL: func.func @momentum(
// CHECK-NEXT: %[[NEXT:.*]]:2 = call @[[KERNEL:[a-z_0-9]+]](
// CHECK-NEXT: return
// CHECK: func.func private @[[KERNEL]]({{.*}}) -> (tensor<512x16xf32> {baechi.may_alias = array<i64: 0, 1, 2>}, tensor<512x16xf32> {baechi.may_alias = array<i64: 0, 1, 2>})
// CHECK: linalg.generic
// CHECK: -> (tensor<512x16xf32>, tensor<512x16xf32>)
// CHECK-NOT: linalg.generic
func.func @momentum(%w: tensor<512x16xf32>, %m: tensor<512x16xf32>, %g: tensor<512x16xf32>)
    -> (tensor<512x16xf32>, tensor<512x16xf32>) {
  %beta = arith.constant dense<0.9> : tensor<512x16xf32>
  %rate = arith.constant dense<0.1> : tensor<512x16xf32>
  %0 = arith.mulf %m, %beta : tensor<512x16xf32>
  %1 = arith.addf %0, %g : tensor<512x16xf32>
  %2 = math.sqrt %1 : tensor<512x16xf32>
  %3 = arith.mulf %2, %rate : tensor<512x16xf32>
  %4 = arith.mulf %3, %g : tensor<512x16xf32>
  %5 = arith.subf %w, %4 : tensor<512x16xf32>
  return %5, %1 : tensor<512x16xf32>, tensor<512x16xf32>
}

// -----

// Rows of more than 4096 elements stay kernels of their own.

#full = affine_map<(r, c) -> (r, c)>
#row = affine_map<(r, c) -> (r)>

// CHECK-LABEL: func.func @long_rows(
// CHECK: call @sum_4x5000(
// CHECK: call @sub_4x5000(
func.func @long_rows(%x: tensor<4x5000xf32>) -> tensor<4x5000xf32> {
  %zero = arith.constant 0.0 : f32
  %e0 = tensor.empty() : tensor<4xf32>
  %e1 = tensor.empty() : tensor<4x5000xf32>
  %f0 = linalg.fill ins(%zero : f32) outs(%e0 : tensor<4xf32>) -> tensor<4xf32>
  %sum = linalg.generic {indexing_maps = [#full, #row], iterator_types = ["parallel", "reduction"]}
      ins(%x : tensor<4x5000xf32>) outs(%f0 : tensor<4xf32>) {
  ^bb0(%in: f32, %out: f32):
    %a = arith.addf %in, %out : f32
    linalg.yield %a : f32
  } -> tensor<4xf32>
  %y = linalg.generic {indexing_maps = [#full, #row, #full], iterator_types = ["parallel", "parallel"]}
      ins(%x, %sum : tensor<4x5000xf32>, tensor<4xf32>) outs(%e1 : tensor<4x5000xf32>) {
  ^bb0(%in: f32, %s: f32, %out: f32):
    %d = arith.subf %in, %s : f32
    linalg.yield %d : f32
  } -> tensor<4x5000xf32>
  return %y : tensor<4x5000xf32>
}

// -----

// A row of a reversed operand is no slice that upstream's tiling finds: what
// reads in reverse stays a kernel of its own beside loops over rows.

#full = affine_map<(r, c) -> (r, c)>
#backward = affine_map<(r, c) -> (r, -c + 2)>
#row = affine_map<(r, c) -> (r)>
#same = affine_map<(r) -> (r)>

// CHECK-LABEL: func.func @reversed_rows(
// CHECK: %[[SUM:.*]] = call @mul_sum_2x3(
// CHECK: call @exp_2(%[[SUM]])
func.func @reversed_rows(%x: tensor<2x3xf32>) -> tensor<2xf32> {
  %zero = arith.constant 0.0 : f32
  %e0 = tensor.empty() : tensor<2xf32>
  %e1 = tensor.empty() : tensor<2xf32>
  %f0 = linalg.fill ins(%zero : f32) outs(%e0 : tensor<2xf32>) -> tensor<2xf32>
  %sum = linalg.generic {indexing_maps = [#full, #backward, #row], iterator_types = ["parallel", "reduction"]}
      ins(%x, %x : tensor<2x3xf32>, tensor<2x3xf32>) outs(%f0 : tensor<2xf32>) {
  ^bb0(%in: f32, %last: f32, %out: f32):
    %p = arith.mulf %in, %last : f32
    %a = arith.addf %p, %out : f32
    linalg.yield %a : f32
  } -> tensor<2xf32>
  %y = linalg.generic {indexing_maps = [#same, #same], iterator_types = ["parallel"]}
      ins(%sum : tensor<2xf32>) outs(%e1 : tensor<2xf32>) {
  ^bb0(%in: f32, %out: f32):
    %e = math.exp %in : f32
    linalg.yield %e : f32
  } -> tensor<2xf32>
  return %y : tensor<2xf32>
}

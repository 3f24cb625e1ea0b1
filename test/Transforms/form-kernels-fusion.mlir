// What is fused, and what is not.
// RUN: baechi-opt %s --baechi-form-kernels --split-input-file | FileCheck %s

// A transposition of a contraction's result becomes its output map; one of its
// operand an input map; an addition its initial value, which may be in place.

// CHECK-LABEL: func.func @contraction(
// CHECK-SAME: %[[A:.*]]: tensor<4x8xf32>, %[[B:.*]]: tensor<6x8xf32>, %[[C:.*]]: tensor<6x4xf32>)
// CHECK-NEXT: %[[R:.*]] = call @matmul_add_4x6x8(%{{.*}})
// CHECK-NEXT: return %[[R]]
// CHECK: func.func private @matmul_add_4x6x8({{.*}}) -> (tensor<6x4xf32> {baechi.may_alias = array<i64: [[INIT:[0-2]]]>})
// CHECK-NEXT: linalg.generic
// CHECK-SAME: iterator_types = ["parallel", "parallel", "reduction"]
// CHECK-SAME: outs(%arg[[INIT]] : tensor<6x4xf32>)
func.func @contraction(%a: tensor<4x8xf32>, %b: tensor<6x8xf32>, %c: tensor<6x4xf32>) -> tensor<6x4xf32> {
  %zero = arith.constant 0.0 : f32
  %e0 = tensor.empty() : tensor<8x6xf32>
  %bt = linalg.transpose ins(%b : tensor<6x8xf32>) outs(%e0 : tensor<8x6xf32>) permutation = [1, 0]
  %e1 = tensor.empty() : tensor<4x6xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e1 : tensor<4x6xf32>) -> tensor<4x6xf32>
  %ab = linalg.matmul ins(%a, %bt : tensor<4x8xf32>, tensor<8x6xf32>) outs(%f : tensor<4x6xf32>) -> tensor<4x6xf32>
  %e2 = tensor.empty() : tensor<6x4xf32>
  %t = linalg.transpose ins(%ab : tensor<4x6xf32>) outs(%e2 : tensor<6x4xf32>) permutation = [1, 0]
  %sum = arith.addf %t, %c : tensor<6x4xf32>
  return %sum : tensor<6x4xf32>
}

// -----

// A bias is added where the result is read, not written out to be added to; and
// nothing is computed inside of a contraction.

// CHECK-LABEL: func.func @bias(
// CHECK-NEXT: %[[E:.*]] = call @exp_4x8(
// CHECK-NEXT: %[[M:.*]] = call @matmul_4x6x8(
// CHECK-NEXT: %[[R:.*]] = call @add_tanh_4x6(
// CHECK-NEXT: return %[[R]]
func.func @bias(%a: tensor<4x8xf32>, %b: tensor<8x6xf32>, %bias: tensor<6xf32>) -> tensor<4x6xf32> {
  %zero = arith.constant 0.0 : f32
  %e1 = tensor.empty() : tensor<4x6xf32>
  %exp = math.exp %a : tensor<4x8xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e1 : tensor<4x6xf32>) -> tensor<4x6xf32>
  %m = linalg.matmul ins(%exp, %b : tensor<4x8xf32>, tensor<8x6xf32>) outs(%f : tensor<4x6xf32>) -> tensor<4x6xf32>
  %wide = linalg.broadcast ins(%bias : tensor<6xf32>) outs(%e1 : tensor<4x6xf32>) dimensions = [0]
  %sum = arith.addf %m, %wide : tensor<4x6xf32>
  %r = math.tanh %sum : tensor<4x6xf32>
  return %r : tensor<4x6xf32>
}

// -----

// A cheap value with two users is computed in both, so that it is never
// written; rows too long for the caches keep the two kernels apart.

// CHECK-LABEL: func.func @recompute(
// CHECK-SAME: %[[X:.*]]: tensor<4x5000xf32>)
// CHECK-NEXT: %[[S:.*]] = call @mul_sum_4x5000(%[[X]])
// CHECK-NEXT: %[[Y:.*]] = call @mul_sub_4x5000(%[[X]], %[[S]])
// CHECK-NEXT: return %[[Y]]
#full = affine_map<(r, c) -> (r, c)>
#row = affine_map<(r, c) -> (r)>
func.func @recompute(%x: tensor<4x5000xf32>) -> tensor<4x5000xf32> {
  %zero = arith.constant 0.0 : f32
  %e0 = tensor.empty() : tensor<4xf32>
  %e1 = tensor.empty() : tensor<4x5000xf32>
  %sq = arith.mulf %x, %x : tensor<4x5000xf32>
  %f0 = linalg.fill ins(%zero : f32) outs(%e0 : tensor<4xf32>) -> tensor<4xf32>
  %sum = linalg.generic {indexing_maps = [#full, #row], iterator_types = ["parallel", "reduction"]}
      ins(%sq : tensor<4x5000xf32>) outs(%f0 : tensor<4xf32>) {
  ^bb0(%in: f32, %out: f32):
    %a = arith.addf %in, %out : f32
    linalg.yield %a : f32
  } -> tensor<4xf32>
  %y = linalg.generic {indexing_maps = [#full, #row, #full], iterator_types = ["parallel", "parallel"]}
      ins(%sq, %sum : tensor<4x5000xf32>, tensor<4xf32>) outs(%e1 : tensor<4x5000xf32>) {
  ^bb0(%in: f32, %s: f32, %out: f32):
    %d = arith.subf %in, %s : f32
    linalg.yield %d : f32
  } -> tensor<4x5000xf32>
  return %y : tensor<4x5000xf32>
}

// -----

// A reduction over columns has the columns innermost.

// CHECK-LABEL: func.func @columns(
// CHECK: func.func private @sum_1024x64
// CHECK: iterator_types = ["reduction", "parallel"]
func.func @columns(%x: tensor<1024x64xf32>) -> tensor<64xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<64xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<64xf32>) -> tensor<64xf32>
  %sum = linalg.generic {
      indexing_maps = [affine_map<(c, r) -> (r, c)>, affine_map<(c, r) -> (c)>],
      iterator_types = ["parallel", "reduction"]}
      ins(%x : tensor<1024x64xf32>) outs(%f : tensor<64xf32>) {
  ^bb0(%in: f32, %out: f32):
    %a = arith.addf %in, %out : f32
    linalg.yield %a : f32
  } -> tensor<64xf32>
  return %sum : tensor<64xf32>
}

// -----

// A concatenation is one kernel; its pieces are operands.

// CHECK-LABEL: func.func @concatenate(
// CHECK-SAME: %[[A:.*]]: tensor<2x3xf32>, %[[B:.*]]: tensor<2x4xf32>)
// CHECK-NEXT: %[[R:.*]] = call @[[KERNEL:[a-z_0-9]+]](%[[A]], %[[B]])
// CHECK-NEXT: return %[[R]]
// CHECK: func.func private @[[KERNEL]](
// CHECK: tensor.insert_slice
// CHECK: tensor.insert_slice
func.func @concatenate(%a: tensor<2x3xf32>, %b: tensor<2x4xf32>) -> tensor<2x7xf32> {
  %r = tensor.concat dim(1) %a, %b : (tensor<2x3xf32>, tensor<2x4xf32>) -> tensor<2x7xf32>
  return %r : tensor<2x7xf32>
}

// -----

// A sum that is only read in slices is computed where these are read: the gates
// of a recurrent cell.

// CHECK-LABEL: func.func @gates(
// CHECK-NEXT: %[[R:.*]] = call @[[KERNEL:[a-z_0-9]+]](%{{arg[01]}}, %{{arg[01]}})
// CHECK-NEXT: return %[[R]]
func.func @gates(%x: tensor<4x6xf32>, %b: tensor<4x6xf32>) -> tensor<4x3xf32> {
  %sum = arith.addf %x, %b : tensor<4x6xf32>
  %left = tensor.extract_slice %sum[0, 0] [4, 3] [1, 1] : tensor<4x6xf32> to tensor<4x3xf32>
  %right = tensor.extract_slice %sum[0, 3] [4, 3] [1, 1] : tensor<4x6xf32> to tensor<4x3xf32>
  %0 = math.tanh %left : tensor<4x3xf32>
  %1 = math.exp %right : tensor<4x3xf32>
  %2 = arith.mulf %0, %1 : tensor<4x3xf32>
  return %2 : tensor<4x3xf32>
}

// -----

// What is compared for equality is computed once: code that computes it again might
// round otherwise. (The gradient of a maximum looks for the elements that are it.)

// CHECK-LABEL: func.func @maximum(
// CHECK: %[[Y:.*]] = call @exp_4096(
// CHECK: %[[MAX:.*]] = call @max_4096(%[[Y]])
// CHECK: call @compare_select_4096(%[[Y]], %[[MAX]],
func.func @maximum(%x: tensor<4096xf32>, %g: tensor<f32>) -> (tensor<f32>, tensor<4096xf32>) {
  %y = math.exp %x : tensor<4096xf32>
  %low = arith.constant 0xFF800000 : f32
  %e0 = tensor.empty() : tensor<f32>
  %f0 = linalg.fill ins(%low : f32) outs(%e0 : tensor<f32>) -> tensor<f32>
  %max = linalg.generic {indexing_maps = [affine_map<(d0) -> (d0)>, affine_map<(d0) -> ()>], iterator_types = ["reduction"]} ins(%y : tensor<4096xf32>) outs(%f0 : tensor<f32>) {
  ^bb0(%in: f32, %out: f32):
    %0 = arith.maximumf %in, %out : f32
    linalg.yield %0 : f32
  } -> tensor<f32>
  %e1 = tensor.empty() : tensor<4096xf32>
  %gradient = linalg.generic {indexing_maps = [affine_map<(d0) -> (d0)>, affine_map<(d0) -> ()>, affine_map<(d0) -> ()>, affine_map<(d0) -> (d0)>], iterator_types = ["parallel"]} ins(%y, %max, %g : tensor<4096xf32>, tensor<f32>, tensor<f32>) outs(%e1 : tensor<4096xf32>) {
  ^bb0(%in: f32, %m: f32, %d: f32, %out: f32):
    %zero = arith.constant 0.0 : f32
    %is = arith.cmpf oeq, %in, %m : f32
    %0 = arith.select %is, %d, %zero : f32
    linalg.yield %0 : f32
  } -> tensor<4096xf32>
  return %max, %gradient : tensor<f32>, tensor<4096xf32>
}

// -----

// A producer with nine readers is not computed in each of them, but in each of eight:
// the first ones are looked at again when the ninth has been found to need none of it.

// CHECK-LABEL: func.func @readers(
// CHECK-COUNT-8: call @add_sub_64(
func.func @readers(%a: tensor<64xi32>, %b: tensor<8x64xi32>) -> (tensor<64xi32>, tensor<64xi32>, tensor<64xi32>, tensor<64xi32>, tensor<64xi32>, tensor<64xi32>, tensor<64xi32>, tensor<64xi32>, tensor<64xi32>) {
  %zero = arith.constant 0 : i32
  %one = arith.constant 1 : i32
  %empty = tensor.empty() : tensor<64xi32>
  %zeros = linalg.generic {indexing_maps = [affine_map<(d0) -> (d0)>], iterator_types = ["parallel"]} outs(%empty : tensor<64xi32>) {
  ^bb0(%out: i32):
    linalg.yield %zero : i32
  } -> tensor<64xi32>
  %sum = linalg.generic {indexing_maps = [affine_map<(d0) -> (d0)>, affine_map<(d0) -> (d0)>], iterator_types = ["parallel"]} ins(%a : tensor<64xi32>) outs(%empty : tensor<64xi32>) {
  ^bb0(%in: i32, %out: i32):
    %0 = arith.addi %in, %one : i32
    linalg.yield %0 : i32
  } -> tensor<64xi32>
  %b0 = tensor.extract_slice %b[0, 0] [1, 64] [1, 1] : tensor<8x64xi32> to tensor<64xi32>
  %r0 = arith.subi %sum, %b0 : tensor<64xi32>
  %b1 = tensor.extract_slice %b[1, 0] [1, 64] [1, 1] : tensor<8x64xi32> to tensor<64xi32>
  %r1 = arith.subi %sum, %b1 : tensor<64xi32>
  %b2 = tensor.extract_slice %b[2, 0] [1, 64] [1, 1] : tensor<8x64xi32> to tensor<64xi32>
  %r2 = arith.subi %sum, %b2 : tensor<64xi32>
  %b3 = tensor.extract_slice %b[3, 0] [1, 64] [1, 1] : tensor<8x64xi32> to tensor<64xi32>
  %r3 = arith.subi %sum, %b3 : tensor<64xi32>
  %b4 = tensor.extract_slice %b[4, 0] [1, 64] [1, 1] : tensor<8x64xi32> to tensor<64xi32>
  %r4 = arith.subi %sum, %b4 : tensor<64xi32>
  %b5 = tensor.extract_slice %b[5, 0] [1, 64] [1, 1] : tensor<8x64xi32> to tensor<64xi32>
  %r5 = arith.subi %sum, %b5 : tensor<64xi32>
  %b6 = tensor.extract_slice %b[6, 0] [1, 64] [1, 1] : tensor<8x64xi32> to tensor<64xi32>
  %r6 = arith.subi %sum, %b6 : tensor<64xi32>
  %b7 = tensor.extract_slice %b[7, 0] [1, 64] [1, 1] : tensor<8x64xi32> to tensor<64xi32>
  %r7 = arith.subi %sum, %b7 : tensor<64xi32>
  %masked = arith.muli %sum, %zeros : tensor<64xi32>
  return %r0, %r1, %r2, %r3, %r4, %r5, %r6, %r7, %masked : tensor<64xi32>, tensor<64xi32>, tensor<64xi32>, tensor<64xi32>, tensor<64xi32>, tensor<64xi32>, tensor<64xi32>, tensor<64xi32>, tensor<64xi32>
}

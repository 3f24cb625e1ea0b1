// Loops become their turns, in which the number of the turn is a constant.
//
// RUN: baechi-opt %s --baechi-unroll-loops --split-input-file --mlir-print-debuginfo --mlir-print-local-scope | FileCheck %s
// RUN: baechi-opt %s --baechi-unroll-loops --split-input-file --remarks-filter="baechi-unroll-loops" -o %t 2>&1 | FileCheck %s --check-prefix=REMARK
// RUN: baechi-opt %s --baechi-unroll-loops=limit=4 --split-input-file --remarks-filter-missed="baechi-unroll-loops" -o %t 2>&1 | FileCheck %s --check-prefix=LIMIT
// RUN: FileCheck %s --check-prefix=WITHIN --input-file=%t
// RUN: baechi-opt %s --baechi-unroll-loops=least-ns=1000000 --split-input-file --remarks-filter-missed="baechi-unroll-loops" -o %t 2>&1 | FileCheck %s --check-prefix=SMALL
// RUN: baechi-opt %s --baechi-unroll-loops=least-share=101 --split-input-file --remarks-filter-missed="baechi-unroll-loops" -o %t 2>&1 | FileCheck %s --check-prefix=SHARE

// Layers with stacked weights, as lax.scan has them: the backward loop reads
// what the forward loop has put on a stack, and of the stack of gradients, of
// which every element is written, nothing else is read.
// CHECK-LABEL: @layers
// CHECK-SAME: (%[[W:[^:]*]]: tensor<2x8x8xf32>{{[^,]*}}, %[[X:[^:]*]]: tensor<8x8xf32>
// CHECK-NOT: scf
// CHECK: %[[W0:.*]] = tensor.extract_slice %[[W]][0, 0, 0] [1, 8, 8] [1, 1, 1]
// CHECK: %[[C0:.*]] = tensor.collapse_shape %[[W0]]
// CHECK: %[[H0:.*]] = linalg.matmul ins(%[[X]], %[[C0]] {{.*}} loc("layer/dot.turn0"
// CHECK: %[[W1:.*]] = tensor.extract_slice %[[W]][1, 0, 0] [1, 8, 8] [1, 1, 1]
// CHECK: %[[C1:.*]] = tensor.collapse_shape %[[W1]]
// CHECK: %[[H1:.*]] = linalg.matmul ins(%[[H0]], %[[C1]] {{.*}} loc("layer/dot.turn1"
// CHECK-NOT: tensor.insert_slice
// CHECK: %[[G1:.*]] = linalg.add ins(%[[H1]], %[[H1]] {{.*}} loc("back/add.turn0"
// CHECK: %[[E1:.*]] = tensor.expand_shape %[[G1]]
// CHECK: %[[EMPTY:.*]] = tensor.empty() : tensor<2x8x8xf32>
// CHECK: %[[S1:.*]] = tensor.insert_slice %[[E1]] into %[[EMPTY]][1, 0, 0]
// CHECK: %[[G0:.*]] = linalg.add ins(%[[H0]], %[[G1]] {{.*}} loc("back/add.turn1"
// CHECK: %[[E0:.*]] = tensor.expand_shape %[[G0]]
// CHECK: %[[S0:.*]] = tensor.insert_slice %[[E0]] into %[[S1]][0, 0, 0]
// CHECK: return %[[S0]]
// REMARK: :[[@LINE+16]]:{{.*}}[Passed] unrolled {{.*}}Operators=6, Turns=2
// REMARK: {{.*}}[Passed] unrolled {{.*}}Operators=4, Turns=2
// LIMIT: not-unrolled {{.*}}its turns are 6 operators, and the step would have more than 4
// SMALL: not-unrolled {{.*}}its operators take less than 1000000 ns each
// SHARE: not-unrolled {{.*}}it takes less than 101 % of the step
func.func @layers(%w: tensor<2x8x8xf32>, %x: tensor<8x8xf32>) -> tensor<2x8x8xf32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2_i32 = arith.constant 2 : i32
  %c1_i32 = arith.constant 1 : i32
  %first = arith.constant dense<0> : tensor<i32>
  %zero = arith.constant 0.0 : f32
  %e3 = tensor.empty() : tensor<2x8x8xf32>
  %stack = linalg.fill ins(%zero : f32) outs(%e3 : tensor<2x8x8xf32>) -> tensor<2x8x8xf32>
  %e = tensor.empty() : tensor<8x8xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<8x8xf32>) -> tensor<8x8xf32>
  %0:3 = scf.while (%i = %first, %h = %x, %hs = %stack) : (tensor<i32>, tensor<8x8xf32>, tensor<2x8x8xf32>) -> (tensor<i32>, tensor<8x8xf32>, tensor<2x8x8xf32>) {
    %n = tensor.extract %i[] : tensor<i32>
    %more = arith.cmpi slt, %n, %c2_i32 : i32
    scf.condition(%more) %i, %h, %hs : tensor<i32>, tensor<8x8xf32>, tensor<2x8x8xf32>
  } do {
  ^bb0(%i: tensor<i32>, %h: tensor<8x8xf32>, %hs: tensor<2x8x8xf32>):
    %n = tensor.extract %i[] : tensor<i32>
    %at = arith.index_cast %n : i32 to index
    %low = arith.maxsi %at, %c0 : index
    %high = arith.minsi %low, %c1 : index
    %s = tensor.extract_slice %w[%high, 0, 0] [1, 8, 8] [1, 1, 1] : tensor<2x8x8xf32> to tensor<1x8x8xf32>
    %c = tensor.collapse_shape %s [[0, 1], [2]] : tensor<1x8x8xf32> into tensor<8x8xf32>
    %e2 = tensor.empty() : tensor<8x8xf32>
    %f2 = linalg.fill ins(%zero : f32) outs(%e2 : tensor<8x8xf32>) -> tensor<8x8xf32>
    %m = linalg.matmul ins(%h, %c : tensor<8x8xf32>, tensor<8x8xf32>) outs(%f2 : tensor<8x8xf32>) -> tensor<8x8xf32> loc("layer/dot")
    %hs2 = tensor.insert_slice %m into %hs[%high, 0, 0] [1, 8, 8] [1, 1, 1] : tensor<8x8xf32> into tensor<2x8x8xf32>
    %e0 = tensor.empty() : tensor<i32>
    %next = linalg.generic {indexing_maps = [affine_map<() -> ()>, affine_map<() -> ()>], iterator_types = []} ins(%i : tensor<i32>) outs(%e0 : tensor<i32>) {
    ^bb0(%in: i32, %out: i32):
      %sum = arith.addi %in, %c1_i32 : i32
      linalg.yield %sum : i32
    } -> tensor<i32>
    scf.yield %next, %m, %hs2 : tensor<i32>, tensor<8x8xf32>, tensor<2x8x8xf32>
  }
  %c2 = arith.constant 2 : index
  %1:2 = scf.for %j = %c0 to %c2 step %c1 iter_args(%g = %0#1, %gs = %stack) -> (tensor<8x8xf32>, tensor<2x8x8xf32>) {
    %at = arith.subi %c1, %j : index
    %h = tensor.extract_slice %0#2[%at, 0, 0] [1, 8, 8] [1, 1, 1] : tensor<2x8x8xf32> to tensor<8x8xf32>
    %e2 = tensor.empty() : tensor<8x8xf32>
    %a = linalg.add ins(%h, %g : tensor<8x8xf32>, tensor<8x8xf32>) outs(%e2 : tensor<8x8xf32>) -> tensor<8x8xf32> loc("back/add")
    %x3 = tensor.expand_shape %a [[0, 1], [2]] output_shape [1, 8, 8] : tensor<8x8xf32> into tensor<1x8x8xf32>
    %gs2 = tensor.insert_slice %x3 into %gs[%at, 0, 0] [1, 8, 8] [1, 1, 1] : tensor<1x8x8xf32> into tensor<2x8x8xf32>
    scf.yield %a, %gs2 : tensor<8x8xf32>, tensor<2x8x8xf32>
  }
  return %1#1 : tensor<2x8x8xf32>
}

// -----

// A loop within is written out in each turn. Where there is no room for that it
// is one operator of each turn.
// CHECK-LABEL: @nested
// CHECK-NOT: scf
// CHECK-COUNT-6: linalg.add
// CHECK-NOT: linalg.add
// WITHIN-LABEL: @nested
// WITHIN-COUNT-2: scf.for
// WITHIN-NOT: scf.for
// WITHIN-LABEL: @ends
func.func @nested(%x: tensor<8x8xf32>) -> tensor<8x8xf32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %c4 = arith.constant 4 : index
  %0 = scf.for %i = %c0 to %c2 step %c1 iter_args(%a = %x) -> tensor<8x8xf32> {
    %1 = scf.for %j = %c1 to %c4 step %c1 iter_args(%b = %a) -> tensor<8x8xf32> {
      %e = tensor.empty() : tensor<8x8xf32>
      %s = linalg.add ins(%b, %x : tensor<8x8xf32>, tensor<8x8xf32>) outs(%e : tensor<8x8xf32>) -> tensor<8x8xf32>
      %e2 = tensor.empty() : tensor<8x8xf32>
      scf.yield %s : tensor<8x8xf32>
    }
    scf.yield %1 : tensor<8x8xf32>
  }
  return %0 : tensor<8x8xf32>
}

// -----

// What has no turn is what it begins with; stacks of which a part is written
// keep the rest, and a slice of two turns' is one of the stack.
// CHECK-LABEL: @ends
// CHECK-SAME: (%[[X:[^:]*]]: tensor<8xf32>{{[^,]*}}, %[[S:[^:]*]]: tensor<4x8xf32>
// CHECK-NOT: scf
// CHECK: %[[A:.*]] = tensor.insert_slice %[[X]] into %[[S]][1, 0] [1, 8] [1, 1]
// CHECK: %[[B:.*]] = tensor.insert_slice %[[X]] into %[[A]][2, 0] [1, 8] [1, 1]
// CHECK: %[[BOTH:.*]] = tensor.extract_slice %[[B]][1, 0] [2, 8] [1, 1]
// CHECK: %[[OLD:.*]] = tensor.extract_slice %[[S]][3, 0] [1, 8] [1, 1]
// CHECK: return %[[X]], %[[BOTH]], %[[OLD]]
func.func @ends(%x: tensor<8xf32>, %s: tensor<4x8xf32>) -> (tensor<8xf32>, tensor<2x8xf32>, tensor<1x8xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c3 = arith.constant 3 : index
  %none = scf.for %i = %c1 to %c1 step %c1 iter_args(%a = %x) -> tensor<8xf32> {
    %e = tensor.empty() : tensor<8xf32>
    %m = linalg.exp ins(%a : tensor<8xf32>) outs(%e : tensor<8xf32>) -> tensor<8xf32>
    scf.yield %m : tensor<8xf32>
  }
  %t = scf.for %i = %c1 to %c3 step %c1 iter_args(%a = %s) -> tensor<4x8xf32> {
    %r = tensor.insert_slice %none into %a[%i, 0] [1, 8] [1, 1] : tensor<8xf32> into tensor<4x8xf32>
    scf.yield %r : tensor<4x8xf32>
  }
  %last:2 = scf.for %i = %c3 to %c3 step %c1 iter_args(%a = %x, %b = %x) -> (tensor<8xf32>, tensor<8xf32>) {
    scf.yield %b, %a : tensor<8xf32>, tensor<8xf32>
  }
  %both = scf.for %i = %c1 to %c3 step %c3 iter_args(%a = %x) -> tensor<8xf32> {
    scf.yield %last#0 : tensor<8xf32>
  }
  %e = tensor.empty() : tensor<2x8xf32>
  %two, %one = scf.for %i = %c1 to %c3 step %c3 iter_args(%a = %e, %b = %both) -> (tensor<2x8xf32>, tensor<8xf32>) {
    %r = tensor.extract_slice %t[%i, 0] [2, 8] [1, 1] : tensor<4x8xf32> to tensor<2x8xf32>
    scf.yield %r, %b : tensor<2x8xf32>, tensor<8xf32>
  }
  %e1 = tensor.empty() : tensor<1x8xf32>
  %c4 = arith.constant 4 : index
  %old = scf.for %i = %c3 to %c4 step %c1 iter_args(%a = %e1) -> tensor<1x8xf32> {
    %r = tensor.extract_slice %t[%i, 0] [1, 8] [1, 1] : tensor<4x8xf32> to tensor<1x8xf32>
    scf.yield %r : tensor<1x8xf32>
  }
  return %one, %two, %old : tensor<8xf32>, tensor<2x8xf32>, tensor<1x8xf32>
}

// -----

// Those stay whole.
// CHECK-LABEL: @whole
// CHECK-COUNT-3: scf.for
// REMARK: not-unrolled {{.*}}how many turns it has is not known: it does not count from one constant to another
// REMARK: not-unrolled {{.*}}it writes rows at places that it reads
// REMARK: not-unrolled {{.*}}it has effects, which keep their order on one device
func.func private @other(tensor<8xf32>) -> tensor<8xf32>
func.func @whole(%x: tensor<8xf32>, %n: index, %table: tensor<4x8xf32>, %rows: tensor<2xindex>) -> (tensor<8xf32>, tensor<4x8xf32>, tensor<8xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %0 = scf.for %i = %c0 to %n step %c1 iter_args(%a = %x) -> tensor<8xf32> {
    %e = tensor.empty() : tensor<8xf32>
    %m = linalg.exp ins(%a : tensor<8xf32>) outs(%e : tensor<8xf32>) -> tensor<8xf32>
    scf.yield %m : tensor<8xf32>
  }
  %1 = scf.for %i = %c0 to %c2 step %c1 iter_args(%a = %table) -> tensor<4x8xf32> {
    %at = tensor.extract %rows[%i] : tensor<2xindex>
    %r = tensor.insert_slice %x into %a[%at, 0] [1, 8] [1, 1] : tensor<8xf32> into tensor<4x8xf32>
    scf.yield %r : tensor<4x8xf32>
  }
  %2 = scf.for %i = %c0 to %c2 step %c1 iter_args(%a = %x) -> tensor<8xf32> {
    %m = func.call @other(%a) : (tensor<8xf32>) -> tensor<8xf32>
    scf.yield %m : tensor<8xf32>
  }
  return %0, %1, %2 : tensor<8xf32>, tensor<4x8xf32>, tensor<8xf32>
}

// -----

// Turns of numbers alone count, too; what is undefined, or beyond its tensor,
// is left as it is.
// CHECK-LABEL: @odd
// CHECK: scf.for
// CHECK: %[[I:.*]] = arith.constant 1 : index
// CHECK: arith.shli
// CHECK: tensor.extract_slice %{{.*}}[%[[I]], 0] [4, 8] [1, 1]
// CHECK-NOT: scf.for
// REMARK: not-unrolled {{.*}}its turns are 1000000000 operators, and the step would have more than 4096
func.func @odd(%t: tensor<4x8xf32>, %x: tensor<4x8xf32>, %n: i32) -> (i32, i32, tensor<4x8xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %c33 = arith.constant 33 : i32
  %many = arith.constant 1000000000 : index
  %0 = scf.for %i = %c0 to %many step %c1 iter_args(%a = %n) -> i32 {
    %m = arith.muli %a, %c33 : i32
    scf.yield %m : i32
  }
  %1:2 = scf.for %i = %c1 to %c2 step %c1 iter_args(%a = %n, %b = %x) -> (i32, tensor<4x8xf32>) {
    %k = arith.index_cast %i : index to i32
    %m = arith.shli %k, %c33 : i32
    %s = tensor.extract_slice %t[%i, 0] [4, 8] [1, 1] : tensor<4x8xf32> to tensor<4x8xf32>
    scf.yield %m, %s : i32, tensor<4x8xf32>
  }
  return %0, %1#0, %1#1 : i32, i32, tensor<4x8xf32>
}

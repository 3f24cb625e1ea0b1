// RUN: baechi-opt %s --split-input-file --baechi-split | FileCheck %s --check-prefixes=CHECK,EXACT
// RUN: baechi-opt %s --split-input-file --baechi-split=reductions=true | FileCheck %s --check-prefixes=CHECK,ANY
// RUN: baechi-opt %s --split-input-file --baechi-split --remarks-filter=baechi-split 2>&1 | FileCheck %s --check-prefix=REMARK

// Rows of a product and what follows them. Uneven pieces are as good as even
// ones; the result alone is put together.
// CHECK-LABEL: func.func @rows(
// CHECK-SAME: %[[X:.*]]: tensor<5x8xf32>, %[[W:.*]]: tensor<8x6xf32>)
// CHECK-DAG: %[[X0:.*]] = tensor.extract_slice %[[X]][0, 0] [3, 8] [1, 1]
// CHECK-DAG: %[[X1:.*]] = tensor.extract_slice %[[X]][3, 0] [2, 8] [1, 1]
// CHECK-DAG: %[[P0:.*]] = linalg.matmul ins(%[[X0]], %[[W]] : {{.*}} -> tensor<3x6xf32>
// CHECK-DAG: %[[P1:.*]] = linalg.matmul ins(%[[X1]], %[[W]] : {{.*}} -> tensor<2x6xf32>
// CHECK-DAG: %[[R0:.*]] = math.tanh %[[P0]] : tensor<3x6xf32>
// CHECK-DAG: %[[R1:.*]] = math.tanh %[[P1]] : tensor<2x6xf32>
// CHECK: %[[A:.*]] = tensor.insert_slice %[[R0]] into %{{.*}}[0, 0] [3, 6] [1, 1]
// CHECK: %[[B:.*]] = tensor.insert_slice %[[R1]] into %[[A]][3, 0] [2, 6] [1, 1]
// CHECK: return %[[B]]
// REMARK: [Passed] split | Category:baechi-split | Function=rows | CopiedUs={{[0-9]+}}, Operations=4, PartialResults=0, Pieces=3+2
func.func @rows(%x: tensor<5x8xf32> {baechi.split = #baechi.split<dim = 0, sizes = [3, 2]>}, %w: tensor<8x6xf32>) -> tensor<5x6xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<5x6xf32>
  %z = linalg.fill ins(%zero : f32) outs(%e : tensor<5x6xf32>) -> tensor<5x6xf32>
  %p = linalg.matmul ins(%x, %w : tensor<5x8xf32>, tensor<8x6xf32>) outs(%z : tensor<5x6xf32>) -> tensor<5x6xf32>
  %r = math.tanh %p : tensor<5x6xf32>
  return %r : tensor<5x6xf32>
}

// -----

// A sum over what is cut is exact as a whole; with reductions, the pieces make
// partial sums: the second starts from zero, and the transposition that follows
// is done for each.
// CHECK-LABEL: func.func @sums(
// EXACT: %[[WHOLE:.*]] = tensor.insert_slice
// EXACT: linalg.matmul {{.*}} outs(%arg2
// EXACT: linalg.transpose
// ANY: %[[S0:.*]] = linalg.matmul {{.*}} outs(%arg2 : tensor<3x2xf32>)
// ANY: %[[ZERO:.*]] = linalg.fill
// ANY: %[[S1:.*]] = linalg.matmul {{.*}} outs(%[[ZERO]] : tensor<3x2xf32>)
// ANY: %[[T0:.*]] = linalg.transpose ins(%[[S0]]
// ANY: %[[T1:.*]] = linalg.transpose ins(%[[S1]]
// ANY: %[[SUM:.*]] = linalg.generic {{.*}} ins(%[[T0]], %[[T1]] : {{.*}} attrs = {baechi.partials}
// ANY: arith.addf
// ANY: return %[[SUM]]
// REMARK: [Missed] not-split | Category:baechi-split | Function=sums | Reason="it reduces the dimension, and sums are to be exact"
func.func @sums(%x: tensor<3x4xf32> {baechi.split = #baechi.split<dim = 1, sizes = [2, 2]>}, %y: tensor<4x2xf32>, %start: tensor<3x2xf32>) -> tensor<2x3xf32> {
  %t = math.tanh %x : tensor<3x4xf32>
  %p = linalg.matmul ins(%t, %y : tensor<3x4xf32>, tensor<4x2xf32>) outs(%start : tensor<3x2xf32>) -> tensor<3x2xf32>
  %e = tensor.empty() : tensor<2x3xf32>
  %r = linalg.transpose ins(%p : tensor<3x2xf32>) outs(%e : tensor<2x3xf32>) permutation = [1, 0]
  return %r : tensor<2x3xf32>
}

// -----

// Reshapes: the extent is followed into a joined dimension and out of it. Where
// it is not outermost, pieces are strided.
// CHECK-LABEL: func.func @reshapes(
// CHECK: tensor.collapse_shape %{{.*}} {{\[\[}}0, 1, 2]] : tensor<3x1x5xf32> into tensor<15xf32>
// CHECK: math.exp %{{.*}} : tensor<15xf32>
// CHECK: tensor.expand_shape %{{.*}} {{\[\[}}0, 1]] output_shape [3, 5] : tensor<15xf32> into tensor<3x5xf32>
// CHECK: tensor.insert_slice {{.*}}[0, 1, 0] [3, 1, 5] [1, 1, 1]
func.func @reshapes(%x: tensor<3x2x5xf32> {baechi.split = #baechi.split<dim = 1, sizes = [1, 1]>}) -> (tensor<30xf32>, tensor<6x5xf32>) {
  %c = tensor.collapse_shape %x [[0, 1, 2]] : tensor<3x2x5xf32> into tensor<30xf32>
  %e = math.exp %c : tensor<30xf32>
  %r = tensor.expand_shape %e [[0, 1]] output_shape [6, 5] : tensor<30xf32> into tensor<6x5xf32>
  %n = arith.negf %r : tensor<6x5xf32>
  return %e, %n : tensor<30xf32>, tensor<6x5xf32>
}

// -----

// Positions are those in the whole, but a piece reads its own part of a tensor
// by its own positions.
// CHECK-LABEL: func.func @positions(
// CHECK-DAG: %[[I0:.*]] = tensor.extract_slice %arg0[0] [2] [1] : tensor<4xi32> to tensor<2xi32>
// CHECK-DAG: %[[I1:.*]] = tensor.extract_slice %arg0[2] [2] [1] : tensor<4xi32> to tensor<2xi32>
// CHECK: linalg.generic
// CHECK: tensor.extract %[[I0]]
// CHECK: linalg.generic
// CHECK: %[[HERE:.*]] = linalg.index 0
// CHECK: %[[THERE:.*]] = arith.addi %[[HERE]], %c2
// CHECK: tensor.extract %[[I1]][%[[HERE]]]
// CHECK: arith.index_cast %[[THERE]]
func.func @positions(%i: tensor<4xi32> {baechi.split = #baechi.split<dim = 0, sizes = [2, 2]>}, %table: tensor<9x3xf32>) -> tensor<4x3xf32> {
  %e = tensor.empty() : tensor<4x3xf32>
  %r = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>], iterator_types = ["parallel", "parallel"]} outs(%e : tensor<4x3xf32>) {
  ^bb0(%out: f32):
    %row = linalg.index 0 : index
    %column = linalg.index 1 : index
    %at = tensor.extract %i[%row] : tensor<4xi32>
    %there = arith.index_cast %at : i32 to index
    %value = tensor.extract %table[%there, %column] : tensor<9x3xf32>
    %position = arith.index_cast %row : index to i32
    %number = arith.sitofp %position : i32 to f32
    %sum = arith.addf %value, %number : f32
    linalg.yield %sum : f32
  } -> tensor<4x3xf32>
  return %r : tensor<4x3xf32>
}

// -----

// What meets itself in another dimension: rows against all rows.
// CHECK-LABEL: func.func @against_itself(
// CHECK-COUNT-2: linalg.generic {{.*}} ins(%{{.*}}, %arg0 : tensor<2x3xf32>, tensor<4x3xf32>)
func.func @against_itself(%x: tensor<4x3xf32> {baechi.split = #baechi.split<dim = 0, sizes = [2, 2]>}, %start: tensor<4x4xf32>) -> tensor<4x4xf32> {
  %r = linalg.generic {indexing_maps = [affine_map<(i, j, k) -> (i, k)>, affine_map<(i, j, k) -> (j, k)>, affine_map<(i, j, k) -> (i, j)>], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%x, %x : tensor<4x3xf32>, tensor<4x3xf32>) outs(%start : tensor<4x4xf32>) {
  ^bb0(%a: f32, %b: f32, %out: f32):
    %p = arith.mulf %a, %b : f32
    %s = arith.addf %out, %p : f32
    linalg.yield %s : f32
  } -> tensor<4x4xf32>
  return %r : tensor<4x4xf32>
}

// -----

// What cannot be cut reads the whole: windows, parts of the dimension, loops.
// CHECK-LABEL: func.func @whole(
// CHECK: linalg.pooling_nwc_sum
// CHECK: tensor.pad
// CHECK: scf.for
// REMARK-DAG: Reason="it reads windows along the dimension"
// REMARK-DAG: Reason="it pads the dimension"
// REMARK-DAG: Reason="it takes or writes only a part of the dimension"
// REMARK-DAG: Reason="it reads the tensor within a loop or a branch"
func.func @whole(%x: tensor<1x4x2xf32> {baechi.split = #baechi.split<dim = 1, sizes = [2, 2]>}, %start: tensor<1x3x2xf32>) -> (tensor<1x3x2xf32>, tensor<1x5x2xf32>, tensor<1x3x2xf32>, tensor<1x4x2xf32>) {
  %zero = arith.constant 0.0 : f32
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c3 = arith.constant 3 : index
  %y = math.exp %x : tensor<1x4x2xf32>
  %window = tensor.empty() : tensor<2xf32>
  %pool = linalg.pooling_nwc_sum ins(%y, %window : tensor<1x4x2xf32>, tensor<2xf32>) outs(%start : tensor<1x3x2xf32>) -> tensor<1x3x2xf32>
  %pad = tensor.pad %y low[0, 1, 0] high[0, 0, 0] {
  ^bb0(%a: index, %b: index, %c: index):
    tensor.yield %zero : f32
  } : tensor<1x4x2xf32> to tensor<1x5x2xf32>
  %part = tensor.extract_slice %y[0, 1, 0] [1, 3, 2] [1, 1, 1] : tensor<1x4x2xf32> to tensor<1x3x2xf32>
  %loop = scf.for %i = %c0 to %c3 step %c1 iter_args(%t = %y) -> tensor<1x4x2xf32> {
    %n = arith.addf %t, %y : tensor<1x4x2xf32>
    scf.yield %n : tensor<1x4x2xf32>
  }
  return %pool, %pad, %part, %loop : tensor<1x3x2xf32>, tensor<1x5x2xf32>, tensor<1x3x2xf32>, tensor<1x4x2xf32>
}

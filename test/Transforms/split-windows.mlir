// RUN: baechi-opt %s --split-input-file --baechi-split | FileCheck %s
// RUN: baechi-opt %s --split-input-file --baechi-split --remarks-filter=baechi-split 2>&1 | FileCheck %s --check-prefix=REMARK

// A pool cut along its windows, strided: pieces read overlapping parts. What
// follows it is cut with it, and the next pool reads a strip of the neighbour.
// CHECK-LABEL: func.func @pools(
// CHECK-SAME: %[[X:.*]]: tensor<1x11x2xf32>
// CHECK-DAG: %[[X0:.*]] = tensor.extract_slice %[[X]][0, 0, 0] [1, 7, 2] [1, 1, 1]
// CHECK-DAG: %[[X1:.*]] = tensor.extract_slice %[[X]][0, 6, 0] [1, 5, 2] [1, 1, 1]
// CHECK: %[[P0:.*]] = linalg.pooling_nwc_sum {{.*}} ins(%[[X0]], %{{.*}} -> tensor<1x3x2xf32>
// CHECK: %[[P1:.*]] = linalg.pooling_nwc_sum {{.*}} ins(%[[X1]], %{{.*}} -> tensor<1x2x2xf32>
// CHECK: %[[T0:.*]] = math.tanh %[[P0]] : tensor<1x3x2xf32>
// CHECK: %[[T1:.*]] = math.tanh %[[P1]] : tensor<1x2x2xf32>
// CHECK: %[[Y0:.*]] = tensor.extract_slice %[[T0]][0, 1, 0] [1, 2, 2] [1, 1, 1]
// CHECK: %[[J:.*]] = tensor.insert_slice %[[Y0]] into %{{.*}}[0, 0, 0] [1, 2, 2]
// CHECK: %[[Y1:.*]] = tensor.insert_slice %[[T1]] into %[[J]][0, 2, 0] [1, 2, 2]
// CHECK: linalg.pooling_nwc_sum {{.*}}ins(%[[T0]], %{{.*}} -> tensor<1x1x2xf32>
// CHECK: linalg.pooling_nwc_sum {{.*}}ins(%[[Y1]], %{{.*}} -> tensor<1x2x2xf32>
// REMARK: [Missed] not-split | {{.*}}Function=pools | Reason="it reads windows along the dimension"
func.func @pools(%x: tensor<1x11x2xf32>, %a: tensor<1x5x2xf32>, %b: tensor<1x3x2xf32>) -> tensor<1x3x2xf32> {
  %window = tensor.empty() : tensor<3xf32>
  %p = linalg.pooling_nwc_sum {strides = dense<2> : tensor<1xi64>, baechi.split = #baechi.split<dim = 1, sizes = [3, 2]>} ins(%x, %window : tensor<1x11x2xf32>, tensor<3xf32>) outs(%a : tensor<1x5x2xf32>) -> tensor<1x5x2xf32>
  %t = math.tanh %p : tensor<1x5x2xf32>
  %q = linalg.pooling_nwc_sum {baechi.split = #baechi.split<dim = 1, sizes = [1, 2]>} ins(%t, %window : tensor<1x5x2xf32>, tensor<3xf32>) outs(%b : tensor<1x3x2xf32>) -> tensor<1x3x2xf32>
  return %q : tensor<1x3x2xf32>
}

// -----

// What is padded is padded in parts; a part that is padding alone is filled.
// CHECK-LABEL: func.func @padded(
// CHECK-SAME: %[[X:.*]]: tensor<1x4x1xf32>, %
// CHECK: %[[A:.*]] = tensor.extract_slice %[[X]][0, 0, 0] [1, 2, 1]
// CHECK: %[[PA:.*]] = tensor.pad %[[A]] low[0, 1, 0] high[0, 0, 0]
// CHECK: : tensor<1x2x1xf32> to tensor<1x3x1xf32>
// CHECK: %[[PB:.*]] = tensor.pad %[[X]] low[0, 0, 0] high[0, 2, 0]
// CHECK: : tensor<1x4x1xf32> to tensor<1x6x1xf32>
// CHECK: %[[PC:.*]] = linalg.fill {{.*}} -> tensor<1x5x1xf32>
// CHECK-NOT: tensor.pad
// CHECK: linalg.pooling_nwc_sum {{.*}}ins(%[[PA]],
// CHECK: linalg.pooling_nwc_sum {{.*}}ins(%[[PB]],
// CHECK: linalg.pooling_nwc_sum {{.*}}ins(%[[PC]],
// REMARK: [Passed] split | {{.*}}Function=padded
// REMARK-NOT: it pads the dimension
func.func @padded(%x: tensor<1x4x1xf32>, %a: tensor<1x8x1xf32>) -> tensor<1x8x1xf32> {
  %zero = arith.constant 0.0 : f32
  %window = tensor.empty() : tensor<3xf32>
  %pad = tensor.pad %x low[0, 1, 0] high[0, 5, 0] {
  ^bb0(%i: index, %j: index, %k: index):
    tensor.yield %zero : f32
  } : tensor<1x4x1xf32> to tensor<1x10x1xf32>
  %p = linalg.pooling_nwc_sum {baechi.split = #baechi.split<dim = 1, sizes = [1, 4, 3]>} ins(%pad, %window : tensor<1x10x1xf32>, tensor<3xf32>) outs(%a : tensor<1x8x1xf32>) -> tensor<1x8x1xf32>
  return %p : tensor<1x8x1xf32>
}

// RUN: baechi-opt %s --baechi-lower-cuda-kernels=stage=launches | FileCheck %s

// The host sees whether the table and the result are one buffer: then it is not
// copied, and the launch changes a row.
// CHECK-LABEL: func.func private @change(
// CHECK-SAME: %[[TABLE:[a-zA-Z0-9_]+]]: memref<1000x64xf32>, %{{[a-zA-Z0-9_]+}}: memref<i32>, %{{[a-zA-Z0-9_]+}}: memref<64xf32>, %[[RESULT:[a-zA-Z0-9_]+]]: memref<1000x64xf32>
// CHECK-DAG: %[[FROM:.*]] = memref.extract_aligned_pointer_as_index %[[TABLE]]
// CHECK-DAG: %[[TO:.*]] = memref.extract_aligned_pointer_as_index %[[RESULT]]
// CHECK: %[[TWO:.*]] = arith.cmpi ne, %[[FROM]], %[[TO]]
// CHECK: scf.if %[[TWO]] {
// CHECK: gpu.launch
// CHECK: memref.load %[[TABLE]]
// CHECK: memref.store %{{.*}}, %[[RESULT]]
// CHECK: gpu.launch
// CHECK-NOT: %[[TABLE]]
// CHECK: memref.store
// CHECK-NOT: gpu.launch
// CHECK: return
func.func private @change(%table: tensor<1000x64xf32>, %at: tensor<i32>, %row: tensor<64xf32>) -> (tensor<1000x64xf32> {baechi.may_alias = array<i64: 0>}) attributes {baechi.kernel} {
  %c = tensor.extract %at[] : tensor<i32>
  %i = arith.index_cast %c : i32 to index
  %r = tensor.insert_slice %row into %table[%i, 0] [1, 64] [1, 1] : tensor<64xf32> into tensor<1000x64xf32>
  return %r : tensor<1000x64xf32>
}

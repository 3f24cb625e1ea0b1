// A slice in one piece is a part of its source's buffer, from partition to code.
// RUN: baechi-opt %s --baechi-place="single machine=host:1" --baechi-partition --baechi-plan-memory -o %t.mlir
// RUN: FileCheck %s < %t.mlir
// RUN: baechi-opt %t.mlir --baechi-verify-partitioned --baechi-lower="target=host prefix=p" | FileCheck %s --check-prefix=CODE

#cost = #baechi.cost<time_ns = {host = 100}, scratch = 0>

func.func private @twice(tensor<16xf32>) -> (tensor<16xf32> {baechi.may_alias = array<i64: 0>}) attributes {baechi.kernel}
func.func private @all(tensor<4x16xf32>) -> tensor<4x16xf32> attributes {baechi.kernel}

// The argument takes 256 bytes and %y the next; the last row of %y is at 448. No
// result goes into the buffer of a slice, and what is returned has its own.
// CHECK: module @host0
// CHECK: func.func @step(
// CHECK: %[[Y:.*]] = call @all({{.*}}baechi.offset = array<i64: 256>
// CHECK-NEXT: %[[S:.*]] = tensor.extract_slice %[[Y]][3, 0] [1, 16] [1, 1]
// CHECK-SAME: {baechi.view} : tensor<4x16xf32> to tensor<16xf32>
// CHECK-NEXT: call @twice(%[[S]]) {{.*}}baechi.offset = array<i64: 512>

// CODE-LABEL: llvm.func @p_step_host0(
// CODE-SAME: %{{.*}}: !llvm.ptr, %[[ARENA:.*]]: !llvm.ptr)
// CODE: llvm.call @baechi.kernel.all(%[[ARENA]],
// CODE: %[[AT:.*]] = llvm.mlir.constant(448 : i64) : i64
// CODE: %[[ROW:.*]] = llvm.getelementptr inbounds %[[ARENA]][%[[AT]]]
// CODE: llvm.call @baechi.kernel.twice(%[[ROW]],
func.func @step(%x: tensor<4x16xf32>) -> tensor<16xf32> {
  %y = call @all(%x) {baechi.cost = #cost} : (tensor<4x16xf32>) -> tensor<4x16xf32>
  %s = tensor.extract_slice %y[3, 0] [1, 16] [1, 1] {baechi.view} : tensor<4x16xf32> to tensor<16xf32>
  %z = call @twice(%s) {baechi.cost = #cost} : (tensor<16xf32>) -> tensor<16xf32>
  return %z : tensor<16xf32>
}

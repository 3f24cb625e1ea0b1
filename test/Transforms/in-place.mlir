// Tensors of which a few rows change are changed in their buffers.
// RUN: baechi-opt %s --split-input-file --baechi-form-kernels | FileCheck %s
// RUN: baechi-opt %s --split-input-file --baechi-form-kernels \
// RUN:     --baechi-annotate-costs="roofline=host:1000:1:0" \
// RUN:   | FileCheck %s --check-prefix=COST
// RUN: baechi-opt %s --split-input-file --baechi-form-kernels \
// RUN:     --baechi-annotate-costs --baechi-place="placer=single machine=host:1" \
// RUN:     --baechi-partition --baechi-plan-memory --baechi-verify-partitioned \
// RUN:   | FileCheck %s --check-prefix=PLAN

// Two changes one after the other, and a reader in between: one buffer.
// CHECK-LABEL: func.func @step
// CHECK: func.func private @insert_slice_100x8({{.*}}) -> (tensor<100x8xf32> {baechi.may_alias = array<i64: 1>})
// A row of 32 bytes is read, and written: 64 ns.
// COST-LABEL: func.func @step
// COST: call @insert_slice_100x8{{.*}}time_ns = {host = 64}
// COST: call @insert_slice_100x8{{.*}}time_ns = {host = 64}
// PLAN: func.func @step(%[[TABLE:[a-z0-9]+]]: tensor<100x8xf32> {{.*}}baechi.offset = 0 : i64
// PLAN: call @insert_slice_100x8{{.*}}baechi.offset = array<i64: 0>
// PLAN: call @insert_slice_100x8{{.*}}baechi.offset = array<i64: 0>
// PLAN-NOT: baechi.copy
// PLAN: return
func.func @step(%table: tensor<100x8xf32> {baechi.updated_by = 0 : i64}, %row: tensor<8xf32>) -> (tensor<100x8xf32>, tensor<8xf32>) {
  %0 = tensor.insert_slice %row into %table[3, 0] [1, 8] [1, 1] : tensor<8xf32> into tensor<100x8xf32>
  %1 = tensor.extract_slice %0[5, 0] [1, 8] [1, 1] : tensor<100x8xf32> to tensor<8xf32>
  %2 = arith.addf %1, %row : tensor<8xf32>
  %3 = tensor.insert_slice %2 into %0[4, 0] [1, 8] [1, 1] : tensor<8xf32> into tensor<100x8xf32>
  return %3, %2 : tensor<100x8xf32>, tensor<8xf32>
}

// -----

// The table before is still needed: a copy of 3200 bytes, read and written.
// COST-LABEL: func.func @kept
// COST: call @insert_slice_100x8{{.*}}time_ns = {host = 6464}
// PLAN: func.func @kept
// PLAN: call @insert_slice_100x8{{.*}}baechi.offset = array<i64: {{[1-9][0-9]*}}>
// PLAN: return
func.func @kept(%table: tensor<100x8xf32>, %row: tensor<8xf32>) -> tensor<100x8xf32> {
  %0 = tensor.insert_slice %row into %table[3, 0] [1, 8] [1, 1] : tensor<8xf32> into tensor<100x8xf32>
  return %0 : tensor<100x8xf32>
}

// -----

// What is on the way to the next value is a result of the step, too.
// COST-LABEL: func.func @returned
// COST: call @insert_slice_100x8{{.*}}time_ns = {host = 6464}
// COST: call @insert_slice_100x8{{.*}}time_ns = {host = 6464}
// PLAN: func.func @returned
// PLAN: %[[FIRST:.*]] = call @insert_slice_100x8{{.*}}baechi.offset = array<i64: [[FIRST_AT:[1-9][0-9]*]]>
// PLAN-NOT: baechi.offset = array<i64: [[FIRST_AT]]>
// PLAN: return
func.func @returned(%table: tensor<100x8xf32> {baechi.updated_by = 0 : i64}, %row: tensor<8xf32>) -> (tensor<100x8xf32>, tensor<100x8xf32>) {
  %0 = tensor.insert_slice %row into %table[3, 0] [1, 8] [1, 1] : tensor<8xf32> into tensor<100x8xf32>
  %1 = tensor.insert_slice %row into %0[4, 0] [1, 8] [1, 1] : tensor<8xf32> into tensor<100x8xf32>
  return %1, %0 : tensor<100x8xf32>, tensor<100x8xf32>
}

// -----

// A kernel that reads the table elsewhere must not change it. (Of a loop: the
// rows it reads are those before.)
// CHECK-LABEL: func.func @rotate
// CHECK: func.func private @{{[a-z0-9_]+}}({{.*}}) -> tensor<8xf32> attributes
func.func @rotate(%x: tensor<8xf32> {baechi.updated_by = 0 : i64}) -> tensor<8xf32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c7 = arith.constant 7 : index
  %r = scf.for %i = %c0 to %c7 step %c1 iter_args(%now = %x) -> (tensor<8xf32>) {
    %value = tensor.extract %x[%i] : tensor<8xf32>
    %at = arith.addi %i, %c1 : index
    %next = tensor.insert %value into %now[%at] : tensor<8xf32>
    scf.yield %next : tensor<8xf32>
  }
  return %r : tensor<8xf32>
}

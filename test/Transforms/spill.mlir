// RUN: split-file %s %t

// A tensor that has no room waits in the pool, as that is faster than to
// compute it again.
// RUN: baechi-opt %t/chain.mlir --remarks-filter=baechi-fit-memory --baechi-place-and-plan="machine=host:1@1024+pool:1MiB budget=0" 2>%t/remarks | FileCheck %s
// RUN: FileCheck %s --check-prefix=REMARKS < %t/remarks
// CHECK: func.func private @baechi_stash(tensor<64xf32>) -> (tensor<64xf32> {baechi.may_alias = array<i64: 0>}) attributes {baechi.kernel, baechi.stash}
// CHECK: module @host0 attributes {baechi.arena = #baechi.arena<bytes = 1024
// CHECK: %[[A:.*]] = call @exp(%arg0)
// CHECK: %[[TOKEN:.*]] = baechi.send %[[A]] to "pool0"
// CHECK: baechi.recv from "pool0"
// CHECK: call @add
// CHECK: module @pool0 attributes {baechi.arena = #baechi.arena<bytes = 256
// CHECK: %[[X:.*]] = baechi.await
// CHECK: %[[S:.*]] = call @baechi_stash(%[[X]])
// CHECK: baechi.send %[[S]] to "host0"
// REMARKS: [Passed] spilled | Category:baechi-fit-memory | Bytes=256, Fetches=1, Operator=exp
// REMARKS: [Passed] fits | Category:baechi-fit-memory | ArgumentBytes=0, FloorBytes={{.*}}, InBytes=256, OutBytes=256, PeakAfter=1024, PeakBefore=1280, Pool=pool0, StepNs=38032

// What waits there is lowered as a copy, or as nothing where it is in its
// operand's place.
// RUN: baechi-opt %t/declared.mlir --baechi-place-and-plan="machine=host:1@1024+pool:1MiB budget=0" --baechi-lower | FileCheck %s --check-prefix=LOWER
// LOWER: llvm.func @{{.*}}pool0
// LOWER: baechi_await_recv
// LOWER: baechi_operator_begin
// LOWER-NOT: llvm.intr.memcpy
// LOWER: baechi_operator_end
// LOWER: baechi_send

// What fits stays as it is, and the pool is empty.
// RUN: baechi-opt %t/chain.mlir --baechi-place-and-plan="machine=host:1@2048+pool:1MiB budget=0" | FileCheck %s --check-prefix=FITS
// FITS-NOT: baechi_stash
// FITS: module @pool0 attributes {baechi.arena = #baechi.arena<bytes = 0

// Refusals say what is missing.
// RUN: not baechi-opt %t/chain.mlir --baechi-place-and-plan="machine=host:1@512+pool:1MiB budget=0" 2>&1 | FileCheck %s --check-prefix=FLOOR
// RUN: not baechi-opt %t/chain.mlir --baechi-place-and-plan="machine=host:1@1000+pool:64 budget=0" 2>&1 | FileCheck %s --check-prefix=POOL
// RUN: not baechi-opt %t/on-pool.mlir --baechi-place-and-plan="machine=host:1+pool:1MiB budget=0" 2>&1 | FileCheck %s --check-prefix=COMPUTES
// RUN: not baechi-opt %t/loop.mlir --baechi-place-and-plan="machine=host:1@512+pool:1MiB budget=0" 2>&1 | FileCheck %s --check-prefix=LOOP
// RUN: not baechi-opt %t/rows.mlir --baechi-place-and-plan="machine=host:1@512+pool:1MiB budget=0" 2>&1 | FileCheck %s --check-prefix=ROWS
// FLOOR: error: the step does not fit 'host0', which has 512 B, with 'pool0' beside it: 'exp#2' by itself needs 768 B of operands, results and scratch; cut into pieces (--split) it would need less
// FLOOR: note: without 'pool0': no placement can fit the memories: operator 3 'exp#2' needs 768 bytes at once
// POOL: error: the step does not fit 'host0', which has 1000 B, with 'pool0' beside it: 'pool0' has 64 B, what would wait there is
// LOOP: error: the step does not fit 'host0', which has 512 B, with 'pool0' beside it: 'turn' by itself needs 2.50 KiB of operands, results and scratch; it has a loop, as a sort has, or a branch, and runs as one kernel with all that this reads and leaves, so that nothing of it can wait: a loop of the program needs less written out (--unroll=always), a sort with fewer elements, all else cut into pieces (--split)
// ROWS: 'rows' by itself needs 1.07 KiB of operands, results and scratch; cut into pieces (--split) it would need less
// COMPUTES: error: operator 1 'exp' is pinned to 'pool0' but has no time for its kind 'pool'

// Of several devices the placer says who computes what; computing again gives
// the shorter step here, so that nothing waits.
// RUN: baechi-opt %t/wide.mlir --baechi-place-and-plan="machine=host:2@1024+pool:1MiB budget=0" | FileCheck %s --check-prefix=TWO
// TWO: module @host0 attributes {baechi.arena = #baechi.arena<bytes = 1024
// TWO: call @exp
// TWO: module @host1 attributes {baechi.arena = #baechi.arena<bytes = 1024
// TWO: call @exp
// TWO: module @pool0 attributes {baechi.arena = #baechi.arena<bytes = 0

// Where one device computes all, its times are those of its kind, whatever
// comes first, and a result is in the room of an operand that is read last, or
// that waits in the pool for a later use: what the operator that needs most
// takes is enough.
// RUN: baechi-opt %t/states.mlir --baechi-place-and-plan="machine=host:1@768+pool:1MiB budget=0" | FileCheck %s --check-prefix=STATES
// RUN: not baechi-opt %t/states.mlir --baechi-place-and-plan="machine=host:1@704+pool:1MiB budget=0" 2>&1 | FileCheck %s --check-prefix=STATES-FLOOR
// STATES: module @host0 attributes {baechi.arena = #baechi.arena<bytes = 768
// STATES-FLOOR: 'update' by itself needs 768 B of operands, results and scratch

// RUN: not baechi-opt %t/lower.mlir --baechi-partition --baechi-plan-memory --baechi-lower 2>&1 | FileCheck %s --check-prefix=ON-POOL
// ON-POOL: error: 'func.call' op is on 'pool0', a pool, which computes nothing; place it on another device

//--- chain.mlir
#cost = #baechi.cost<time_ns = {host = 9000}, scratch = 0>
func.func private @exp(%x: tensor<64xf32>) -> tensor<64xf32> attributes {baechi.kernel} {
  %0 = math.exp %x : tensor<64xf32>
  return %0 : tensor<64xf32>
}
func.func private @add(%x: tensor<64xf32>, %y: tensor<64xf32>) -> tensor<64xf32> attributes {baechi.kernel} {
  %0 = arith.addf %x, %y : tensor<64xf32>
  return %0 : tensor<64xf32>
}
func.func @step(%x: tensor<64xf32>) -> tensor<64xf32> {
  %0 = call @exp(%x) {baechi.cost = #cost} : (tensor<64xf32>) -> tensor<64xf32>
  %1 = call @exp(%0) {baechi.cost = #cost} : (tensor<64xf32>) -> tensor<64xf32>
  %2 = call @exp(%1) {baechi.cost = #baechi.cost<time_ns = {host = 9000}, scratch = 256>} : (tensor<64xf32>) -> tensor<64xf32>
  %3 = call @add(%2, %0) {baechi.cost = #cost} : (tensor<64xf32>, tensor<64xf32>) -> tensor<64xf32>
  return %3 : tensor<64xf32>
}

//--- declared.mlir
#cost = #baechi.cost<time_ns = {host = 9000}, scratch = 0>
func.func private @exp(tensor<64xf32>) -> tensor<64xf32> attributes {baechi.kernel}
func.func private @add(tensor<64xf32>, tensor<64xf32>) -> tensor<64xf32> attributes {baechi.kernel}
func.func @step(%x: tensor<64xf32>) -> tensor<64xf32> {
  %0 = call @exp(%x) {baechi.cost = #cost} : (tensor<64xf32>) -> tensor<64xf32>
  %1 = call @exp(%0) {baechi.cost = #cost} : (tensor<64xf32>) -> tensor<64xf32>
  %2 = call @exp(%1) {baechi.cost = #baechi.cost<time_ns = {host = 9000}, scratch = 256>} : (tensor<64xf32>) -> tensor<64xf32>
  %3 = call @add(%2, %0) {baechi.cost = #cost} : (tensor<64xf32>, tensor<64xf32>) -> tensor<64xf32>
  return %3 : tensor<64xf32>
}

//--- loop.mlir
func.func private @turn(%x: tensor<64xf32>) -> (tensor<64xf32>, tensor<512xf32>) attributes {baechi.kernel} {
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  %end = arith.constant 8 : index
  %empty = tensor.empty() : tensor<512xf32>
  %last, %all = scf.for %i = %zero to %end step %one iter_args(%state = %x, %so_far = %empty) -> (tensor<64xf32>, tensor<512xf32>) {
    %at = affine.apply affine_map<(d0) -> (d0 * 64)>(%i)
    %new = math.exp %state : tensor<64xf32>
    %next = tensor.insert_slice %new into %so_far[%at] [64] [1] : tensor<64xf32> into tensor<512xf32>
    scf.yield %new, %next : tensor<64xf32>, tensor<512xf32>
  }
  return %last, %all : tensor<64xf32>, tensor<512xf32>
}
func.func @step(%x: tensor<64xf32>) -> tensor<512xf32> {
  %0:2 = call @turn(%x) {baechi.cost = #baechi.cost<time_ns = {host = 9000}, scratch = 0>} : (tensor<64xf32>) -> (tensor<64xf32>, tensor<512xf32>)
  return %0#1 : tensor<512xf32>
}

// Loops over the rows of several results, which fusion makes, are none of the
// program's.
//--- rows.mlir
func.func private @rows(%x: tensor<8x16xf32>) -> (tensor<8xf32>, tensor<8x16xf32>) attributes {baechi.kernel} {
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  %end = arith.constant 8 : index
  %a = tensor.empty() : tensor<8xf32>
  %b = tensor.empty() : tensor<8x16xf32>
  %firsts, %exps = scf.for %i = %zero to %end step %one iter_args(%some = %a, %all = %b) -> (tensor<8xf32>, tensor<8x16xf32>) {
    %row = tensor.extract_slice %x[%i, 0] [1, 16] [1, 1] : tensor<8x16xf32> to tensor<1x16xf32>
    %exp = math.exp %row : tensor<1x16xf32>
    %first = tensor.extract_slice %exp[0, 0] [1, 1] [1, 1] : tensor<1x16xf32> to tensor<1xf32>
    %some_more = tensor.insert_slice %first into %some[%i] [1] [1] : tensor<1xf32> into tensor<8xf32>
    %all_more = tensor.insert_slice %exp into %all[%i, 0] [1, 16] [1, 1] : tensor<1x16xf32> into tensor<8x16xf32>
    scf.yield %some_more, %all_more : tensor<8xf32>, tensor<8x16xf32>
  }
  return %firsts, %exps : tensor<8xf32>, tensor<8x16xf32>
}
func.func @step(%x: tensor<8x16xf32>) -> (tensor<8xf32>, tensor<8x16xf32>) {
  %0:2 = call @rows(%x) {baechi.cost = #baechi.cost<time_ns = {host = 9000}, scratch = 0>} : (tensor<8x16xf32>) -> (tensor<8xf32>, tensor<8x16xf32>)
  return %0#0, %0#1 : tensor<8xf32>, tensor<8x16xf32>
}

//--- wide.mlir
#cost = #baechi.cost<time_ns = {host = 90000}, scratch = 0>
func.func private @exp(%x: tensor<64xf32>) -> tensor<64xf32> attributes {baechi.kernel} {
  %0 = math.exp %x : tensor<64xf32>
  return %0 : tensor<64xf32>
}
func.func private @add(%x: tensor<64xf32>, %y: tensor<64xf32>) -> tensor<64xf32> attributes {baechi.kernel} {
  %0 = arith.addf %x, %y : tensor<64xf32>
  return %0 : tensor<64xf32>
}
func.func @step(%x: tensor<64xf32>) -> (tensor<64xf32>, tensor<64xf32>) {
  %0 = call @exp(%x) {baechi.cost = #cost} : (tensor<64xf32>) -> tensor<64xf32>
  %1 = call @exp(%0) {baechi.cost = #cost} : (tensor<64xf32>) -> tensor<64xf32>
  %2 = call @exp(%1) {baechi.cost = #cost} : (tensor<64xf32>) -> tensor<64xf32>
  %3 = call @exp(%2) {baechi.cost = #baechi.cost<time_ns = {host = 90000}, scratch = 512>} : (tensor<64xf32>) -> tensor<64xf32>
  %4 = call @add(%3, %2) {baechi.cost = #cost} : (tensor<64xf32>, tensor<64xf32>) -> tensor<64xf32>
  %5 = call @add(%4, %1) {baechi.cost = #cost} : (tensor<64xf32>, tensor<64xf32>) -> tensor<64xf32>
  %6 = call @add(%5, %0) {baechi.cost = #cost} : (tensor<64xf32>, tensor<64xf32>) -> tensor<64xf32>
  %a = call @exp(%x) {baechi.cost = #cost} : (tensor<64xf32>) -> tensor<64xf32>
  %b = call @exp(%a) {baechi.cost = #cost} : (tensor<64xf32>) -> tensor<64xf32>
  %c = call @exp(%b) {baechi.cost = #cost} : (tensor<64xf32>) -> tensor<64xf32>
  %d = call @exp(%c) {baechi.cost = #baechi.cost<time_ns = {host = 90000}, scratch = 512>} : (tensor<64xf32>) -> tensor<64xf32>
  %e = call @add(%d, %c) {baechi.cost = #cost} : (tensor<64xf32>, tensor<64xf32>) -> tensor<64xf32>
  %f = call @add(%e, %b) {baechi.cost = #cost} : (tensor<64xf32>, tensor<64xf32>) -> tensor<64xf32>
  %g = call @add(%f, %a) {baechi.cost = #cost} : (tensor<64xf32>, tensor<64xf32>) -> tensor<64xf32>
  return %6, %g : tensor<64xf32>, tensor<64xf32>
}

//--- states.mlir
#cost = #baechi.cost<time_ns = {cuda = 9, host = 90000}, scratch = 0>
func.func private @exp(%x: tensor<64xf32>) -> (tensor<64xf32> {baechi.may_alias = array<i64: 0>}) attributes {baechi.kernel} {
  %0 = math.exp %x : tensor<64xf32>
  return %0 : tensor<64xf32>
}
func.func private @update(%p: tensor<64xf32>, %m: tensor<64xf32>, %g: tensor<64xf32>) -> (tensor<64xf32> {baechi.may_alias = array<i64: 0, 1, 2>}, tensor<64xf32> {baechi.may_alias = array<i64: 0, 1, 2>}) attributes {baechi.kernel} {
  %0 = arith.addf %m, %g : tensor<64xf32>
  %1 = arith.subf %p, %0 : tensor<64xf32>
  return %1, %0 : tensor<64xf32>, tensor<64xf32>
}
func.func @step(%p: tensor<64xf32> {baechi.updated_by = 0 : i64}, %m: tensor<64xf32> {baechi.updated_by = 1 : i64}) -> (tensor<64xf32>, tensor<64xf32>, tensor<64xf32>) {
  %0 = call @exp(%p) {baechi.cost = #cost} : (tensor<64xf32>) -> tensor<64xf32>
  %1 = call @exp(%0) {baechi.cost = #cost} : (tensor<64xf32>) -> tensor<64xf32>
  %2 = call @exp(%1) {baechi.cost = #cost} : (tensor<64xf32>) -> tensor<64xf32>
  %3:2 = call @update(%p, %m, %2) {baechi.cost = #cost} : (tensor<64xf32>, tensor<64xf32>, tensor<64xf32>) -> (tensor<64xf32>, tensor<64xf32>)
  return %3#0, %3#1, %0 : tensor<64xf32>, tensor<64xf32>, tensor<64xf32>
}

//--- on-pool.mlir
func.func private @exp(%x: tensor<64xf32>) -> tensor<64xf32> attributes {baechi.kernel} {
  %0 = math.exp %x : tensor<64xf32>
  return %0 : tensor<64xf32>
}
func.func @step(%x: tensor<64xf32>) -> tensor<64xf32> {
  %0 = call @exp(%x) {baechi.pin = "pool0", baechi.cost = #baechi.cost<time_ns = {"" = 9000}, scratch = 0>} : (tensor<64xf32>) -> tensor<64xf32>
  return %0 : tensor<64xf32>
}

//--- lower.mlir
#machine = #baechi.machine<devices = [<"host0", kind = "host", memory = 4096>, <"pool0", kind = "pool", memory = 4096>], link_default = <"" -> "", latency_ns = 2000, bytes_per_us = 8000>, link_model = sequential>
module attributes {baechi.machine = #machine} {
  func.func private @exp(tensor<64xf32>) -> tensor<64xf32> attributes {baechi.kernel}
  func.func @step(%x: tensor<64xf32> {baechi.device = "pool0"}) -> tensor<64xf32> {
    %0 = call @exp(%x) {baechi.device = "pool0", baechi.start = 0 : i64} : (tensor<64xf32>) -> tensor<64xf32>
    return %0 : tensor<64xf32>
  }
}

// RUN: split-file %s %t
// RUN: baechi-opt %t/chain.mlir --baechi-fit-memory=limit=1024 | FileCheck %s
// What it has is what a step may have: nothing more to do.
// RUN: baechi-opt %t/chain.mlir --baechi-fit-memory=limit=1024 -o %t/fit.mlir
// RUN: baechi-opt %t/fit.mlir --baechi-fit-memory=limit=1024 | diff %t/fit.mlir -
// RUN: baechi-opt %t/chain.mlir -o %t/plain.mlir
// RUN: baechi-opt %t/chain.mlir --baechi-fit-memory=limit=2048 | diff %t/plain.mlir -
// RUN: baechi-opt %t/chain.mlir --baechi-fit-memory=machine=host:1@1KiB | FileCheck %s
// RUN: baechi-opt %t/chain.mlir --baechi-fit-memory=machine=host:1@1KiB+pool:1MiB | FileCheck %s
// No pass makes one of two calls.
// RUN: baechi-opt %t/fit.mlir --cse --canonicalize | FileCheck %s

// CHECK-LABEL: @step
// CHECK: %[[A:.*]] = call @exp(%arg0) {baechi.cost
// CHECK: %[[B:.*]] = call @exp(%[[A]])
// CHECK: %[[C:.*]] = call @exp(%[[B]])
// CHECK: %[[AGAIN:.*]] = call @exp(%arg0) {{{.*}}baechi.recompute}
// CHECK: call @add(%[[C]], %[[AGAIN]])

// Where no plan fits, placing does so, and says so.
// RUN: baechi-opt %t/chain.mlir --remarks-filter=baechi-fit-memory --baechi-place-and-plan="machine=host:1@1024 budget=0" 2>%t/remarks | FileCheck %s --check-prefix=PLAN
// RUN: FileCheck %s --check-prefix=REMARKS < %t/remarks
// RUN: not baechi-opt %t/chain.mlir --baechi-place-and-plan="machine=host:1@1024 budget=0 fit-memory=never" 2>&1 | FileCheck %s --check-prefix=NEVER
// RUN: not baechi-opt %t/chain.mlir --baechi-place-and-plan="machine=host:1@1024 fit-memory=always" 2>&1 | FileCheck %s --check-prefix=WORD
// PLAN: baechi.arena<bytes = 1024
// PLAN: baechi.recompute
// REMARKS: [Passed] computed-again | Category:baechi-fit-memory | Bytes=256, Ns=9000, Operator=exp, Times=1
// REMARKS: [Passed] fits | Category:baechi-fit-memory | AgainNs=9000, FloorBytes=1024, FloorOperator=exp#2, PeakAfter=1024, PeakBefore=1280, WorkNs=36000
// NEVER: error: no placement can fit the memories
// NEVER-NOT: again
// WORD: error: unknown fit-memory 'always'; known: auto, whole, never

// What nothing goes under.
// RUN: not baechi-opt %t/chain.mlir --baechi-fit-memory=limit=1000 2>&1 | FileCheck %s --check-prefix=FLOOR
// RUN: not baechi-opt %t/chain.mlir --baechi-place-and-plan="machine=host:1@1000 budget=0" 2>&1 | FileCheck %s --check-prefix=REFUSED
// RUN: not baechi-opt %t/chain.mlir --baechi-fit-memory=limit=-1 2>&1 | FileCheck %s --check-prefix=LIMIT
// RUN: not baechi-opt %t/chain.mlir --baechi-fit-memory 2>&1 | FileCheck %s --check-prefix=MACHINE
// RUN: not baechi-opt %t/empty.mlir --baechi-fit-memory=limit=1000 2>&1 | FileCheck %s --check-prefix=EMPTY
// FLOOR: error: no order holds 1000 B or less, whatever is computed again: 'exp#2' by itself needs 1.00 KiB, of them 256 B of arguments
// REFUSED: {{^}}computing values again does not help: the leanest rewrite that was found needs 1.00 KiB, 'exp#2' by itself needs 1.00 KiB, of them 256 B of arguments; cut into pieces (--split) it would need less
// On several devices, no pool helps an operator that none of them holds.
// RUN: not baechi-opt %t/chain.mlir --baechi-place-and-plan="machine=host:2@700 budget=0" 2>&1 | FileCheck %s --check-prefix=ALONE
// ALONE: 'exp#2' by itself needs 1.00 KiB, of them 256 B of arguments; 768 B of that must be on one device, the largest has 700 B; cut into pieces (--split) it would need less
// LIMIT: error: limit is -1; give bytes
// MACHINE: error: no machine
// EMPTY: error: the step has no operators

// A host call with effects runs once, whatever that costs; so does one whose
// numbers the host computes.
// RUN: not baechi-opt %t/effects.mlir --baechi-fit-memory=limit=1024 2>&1 | FileCheck %s --check-prefix=FLOOR2
// RUN: not baechi-opt %t/effects.mlir --baechi-place-and-plan="machine=host:1@1024 budget=0" 2>&1 | FileCheck %s --check-prefix=TRIED
// FLOOR2: error: no order holds 1.00 KiB or less
// TRIED: {{^}}computing values again does not help: no rewrite was found, 'exp#1' by itself needs 1.00 KiB, of them 256 B of arguments; it takes more memory, or a pool beside it (+pool:SIZE in the machine), where tensors wait
// RUN: not baechi-opt %t/chain.mlir --baechi-place-and-plan="machine=host:1@192 budget=0" 2>&1 | FileCheck %s --check-prefix=ARGUMENTS
// ARGUMENTS: 'exp#2' by itself needs 1.00 KiB, of them 256 B of arguments; it takes more memory, or a pool beside it (+pool:SIZE in the machine), where arguments may live

// Where results may be written in their operands' places, what a plan takes
// decides, and they are counted once.
// RUN: baechi-opt %t/places.mlir --remarks-filter=baechi-fit-memory --baechi-place-and-plan="machine=host:1@768 budget=0" 2>&1 | FileCheck %s --check-prefix=PLACES
// RUN: not baechi-opt %t/places.mlir --baechi-place-and-plan="machine=host:1@704 budget=0" 2>&1 | FileCheck %s --check-prefix=LESS
// PLACES: [Passed] fits | Category:baechi-fit-memory | AgainNs=9000, FloorBytes=768, FloorOperator=exp#2, PeakAfter=1024, PeakBefore=1280
// PLACES: baechi.arena<bytes = 768
// LESS: {{^}}computing values again does not help: the leanest rewrite that was found needs 768 B, 'exp#2' by itself needs 768 B, of them 256 B of arguments; cut into pieces (--split) it would need less

// %w is overwritten before the late use: what reads it does not run again.
// RUN: not baechi-opt %t/victim.mlir --baechi-fit-memory=limit=1280 2>&1 | FileCheck %s --check-prefix=VICTIM
// RUN: baechi-opt %t/late.mlir --baechi-fit-memory=limit=1280 | FileCheck %s --check-prefix=LATE
// RUN: baechi-opt %t/late.mlir --baechi-fit-memory=limit=1280 --baechi-place-and-plan="machine=host:1@1280 budget=0" | FileCheck %s --check-prefix=IN-PLACE
// VICTIM: error: no order holds 1.25 KiB or less
// LATE: %[[H:.*]] = call @add(%arg1, %arg0)
// LATE: call @add(%arg1, %arg0) {{{.*}}baechi.recompute}
// LATE: call @update(%arg0
// The update is still in place.
// IN-PLACE: baechi.arena<bytes = 1280
// IN-PLACE: call @update

// Views of what is made again are made again.
// RUN: baechi-opt %t/views.mlir --baechi-fit-memory=limit=1024 | FileCheck %s --check-prefix=VIEWS
// VIEWS: %[[AGAIN:.*]] = call @exp(%arg0) {{{.*}}baechi.recompute}
// VIEWS: %[[VIEW:.*]] = tensor.expand_shape %[[AGAIN]]
// VIEWS: call @join(%{{.*}}, %[[VIEW]])

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

//--- places.mlir
#cost = #baechi.cost<time_ns = {host = 9000}, scratch = 0>
func.func private @exp(%x: tensor<64xf32>) -> (tensor<64xf32> {baechi.may_alias = array<i64: 0>}) attributes {baechi.kernel} {
  %0 = math.exp %x : tensor<64xf32>
  return %0 : tensor<64xf32>
}
func.func private @add(%x: tensor<64xf32>, %y: tensor<64xf32>) -> (tensor<64xf32> {baechi.may_alias = array<i64: 0, 1>}) attributes {baechi.kernel} {
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

//--- empty.mlir
func.func @step() {
  return
}

//--- effects.mlir
#cost = #baechi.cost<time_ns = {host = 9000}, scratch = 0>
#work = #baechi.cost<time_ns = {host = 9000}, scratch = 256>
func.func private @exp(%x: tensor<64xf32>) -> tensor<64xf32> attributes {baechi.kernel} {
  %0 = math.exp %x : tensor<64xf32>
  return %0 : tensor<64xf32>
}
func.func private @add(%x: tensor<64xf32>, %y: tensor<64xf32>) -> tensor<64xf32> attributes {baechi.kernel} {
  %0 = arith.addf %x, %y : tensor<64xf32>
  return %0 : tensor<64xf32>
}
func.func private @solve(tensor<64xf32>) -> tensor<64xf32> attributes {baechi.host_call = {effects = "pure", ns = 9000 : i64}, baechi.kernel}
func.func @step(%x: tensor<64xf32>) -> tensor<64xf32> {
  %0 = call @solve(%x) {baechi.cost = #cost} : (tensor<64xf32>) -> tensor<64xf32>
  %1 = call @exp(%0) {baechi.cost = #cost} : (tensor<64xf32>) -> tensor<64xf32>
  %2 = call @exp(%1) {baechi.cost = #work} : (tensor<64xf32>) -> tensor<64xf32>
  %3 = call @add(%2, %0) {baechi.cost = #cost} : (tensor<64xf32>, tensor<64xf32>) -> tensor<64xf32>
  return %3 : tensor<64xf32>
}

//--- victim.mlir
#cost = #baechi.cost<time_ns = {host = 9000}, scratch = 0>
#work = #baechi.cost<time_ns = {host = 9000}, scratch = 256>
func.func private @exp(%x: tensor<64xf32>) -> tensor<64xf32> attributes {baechi.kernel} {
  %0 = math.exp %x : tensor<64xf32>
  return %0 : tensor<64xf32>
}
func.func private @add(%x: tensor<64xf32>, %y: tensor<64xf32>) -> tensor<64xf32> attributes {baechi.kernel} {
  %0 = arith.addf %x, %y : tensor<64xf32>
  return %0 : tensor<64xf32>
}
func.func private @update(%x: tensor<64xf32>, %y: tensor<64xf32>) -> (tensor<64xf32> {baechi.may_alias = array<i64: 0>}) attributes {baechi.kernel} {
  %0 = arith.addf %x, %y : tensor<64xf32>
  return %0 : tensor<64xf32>
}
func.func @step(%w: tensor<64xf32> {baechi.updated_by = 0 : i64}, %x: tensor<64xf32>) -> (tensor<64xf32>, tensor<64xf32>) {
  %0 = call @add(%x, %w) {baechi.cost = #cost} : (tensor<64xf32>, tensor<64xf32>) -> tensor<64xf32>
  %1 = call @update(%w, %0) {baechi.cost = #cost} : (tensor<64xf32>, tensor<64xf32>) -> tensor<64xf32>
  %2 = call @exp(%1) {baechi.cost = #cost} : (tensor<64xf32>) -> tensor<64xf32>
  %3 = call @exp(%2) {baechi.cost = #work} : (tensor<64xf32>) -> tensor<64xf32>
  %4 = call @add(%3, %0) {baechi.cost = #cost} : (tensor<64xf32>, tensor<64xf32>) -> tensor<64xf32>
  return %1, %4 : tensor<64xf32>, tensor<64xf32>
}

//--- late.mlir
#cost = #baechi.cost<time_ns = {host = 9000}, scratch = 0>
#work = #baechi.cost<time_ns = {host = 9000}, scratch = 256>
func.func private @exp(%x: tensor<64xf32>) -> tensor<64xf32> attributes {baechi.kernel} {
  %0 = math.exp %x : tensor<64xf32>
  return %0 : tensor<64xf32>
}
func.func private @add(%x: tensor<64xf32>, %y: tensor<64xf32>) -> tensor<64xf32> attributes {baechi.kernel} {
  %0 = arith.addf %x, %y : tensor<64xf32>
  return %0 : tensor<64xf32>
}
func.func private @update(%x: tensor<64xf32>, %y: tensor<64xf32>) -> (tensor<64xf32> {baechi.may_alias = array<i64: 0>}) attributes {baechi.kernel} {
  %0 = arith.addf %x, %y : tensor<64xf32>
  return %0 : tensor<64xf32>
}
func.func @step(%w: tensor<64xf32> {baechi.updated_by = 0 : i64}, %x: tensor<64xf32>) -> tensor<64xf32> {
  %0 = call @add(%x, %w) {baechi.cost = #cost} : (tensor<64xf32>, tensor<64xf32>) -> tensor<64xf32>
  %1 = call @exp(%0) {baechi.cost = #cost} : (tensor<64xf32>) -> tensor<64xf32>
  %2 = call @exp(%1) {baechi.cost = #work} : (tensor<64xf32>) -> tensor<64xf32>
  %3 = call @add(%2, %0) {baechi.cost = #cost} : (tensor<64xf32>, tensor<64xf32>) -> tensor<64xf32>
  %4 = call @update(%w, %3) {baechi.cost = #cost} : (tensor<64xf32>, tensor<64xf32>) -> tensor<64xf32>
  return %4 : tensor<64xf32>
}

//--- views.mlir
#cost = #baechi.cost<time_ns = {host = 9000}, scratch = 0>
#work = #baechi.cost<time_ns = {host = 9000}, scratch = 256>
func.func private @exp(%x: tensor<64xf32>) -> tensor<64xf32> attributes {baechi.kernel} {
  %0 = math.exp %x : tensor<64xf32>
  return %0 : tensor<64xf32>
}
func.func private @add(%x: tensor<64xf32>, %y: tensor<64xf32>) -> tensor<64xf32> attributes {baechi.kernel} {
  %0 = arith.addf %x, %y : tensor<64xf32>
  return %0 : tensor<64xf32>
}
func.func private @join(%x: tensor<64xf32>, %y: tensor<8x8xf32>) -> tensor<64xf32> attributes {baechi.kernel} {
  %0 = tensor.collapse_shape %y [[0, 1]] : tensor<8x8xf32> into tensor<64xf32>
  %1 = arith.addf %x, %0 : tensor<64xf32>
  return %1 : tensor<64xf32>
}
func.func @step(%x: tensor<64xf32>) -> tensor<64xf32> {
  %0 = call @exp(%x) {baechi.cost = #cost} : (tensor<64xf32>) -> tensor<64xf32>
  %view = tensor.expand_shape %0 [[0, 1]] output_shape [8, 8] : tensor<64xf32> into tensor<8x8xf32>
  %1 = call @exp(%0) {baechi.cost = #cost} : (tensor<64xf32>) -> tensor<64xf32>
  %2 = call @exp(%1) {baechi.cost = #work} : (tensor<64xf32>) -> tensor<64xf32>
  %3 = call @join(%2, %view) {baechi.cost = #cost} : (tensor<64xf32>, tensor<8x8xf32>) -> tensor<64xf32>
  return %3 : tensor<64xf32>
}

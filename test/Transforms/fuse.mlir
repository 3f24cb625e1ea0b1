// RUN: baechi-opt %s --split-input-file --baechi-fuse=machine=host:2@1MiB | FileCheck %s
// RUN: baechi-opt %s --split-input-file --baechi-fuse=machine=host:2@1MiB --baechi-place=metf --baechi-verify-placed -o /dev/null
// RUN: not baechi-opt %s --split-input-file --baechi-fuse 2>&1 | FileCheck %s --check-prefix=NO-MACHINE
// NO-MACHINE: error: no machine: give the pass machine=host:2

// A tensor with one reader is not worth moving: each chain is a group, called
// after its first member. The chains stay apart.
// CHECK-LABEL: func.func @chains
func.func @chains(%x: tensor<64x64xf32>, %y: tensor<64x64xf32>) -> (tensor<64x64xf32>, tensor<64x64xf32>) {
  // CHECK: arith.addf {{.*}}baechi.group = "[[FIRST:[^"]*]]"
  // CHECK: arith.mulf {{.*}}baechi.group = "[[FIRST]]"
  %a = arith.addf %x, %x {baechi.cost = #baechi.cost<time_ns = {host = 100000}, scratch = 0>} : tensor<64x64xf32>
  %b = arith.mulf %a, %a {baechi.cost = #baechi.cost<time_ns = {host = 1000}, scratch = 0>} : tensor<64x64xf32>
  // CHECK-NOT: baechi.group = "[[FIRST]]"
  // CHECK: arith.subf {{.*}}baechi.group = "[[SECOND:[^"]*]]"
  // CHECK: arith.divf {{.*}}baechi.group = "[[SECOND]]"
  %c = arith.subf %y, %y {baechi.cost = #baechi.cost<time_ns = {host = 100000}, scratch = 0>} : tensor<64x64xf32>
  %d = arith.divf %c, %c {baechi.cost = #baechi.cost<time_ns = {host = 1000}, scratch = 0>} : tensor<64x64xf32>
  return %b, %d : tensor<64x64xf32>, tensor<64x64xf32>
}

// -----

// What is pinned to two devices is no group, whatever it costs to move.
// CHECK-LABEL: func.func @pinned
func.func @pinned(%x: tensor<64x64xf32>) -> tensor<64x64xf32> {
  // CHECK: arith.addf {{.*}}baechi.pin = "host0"
  // CHECK-NOT: arith.mulf {{.*}}baechi.group
  // CHECK: arith.mulf {{.*}}baechi.pin = "host1"
  %a = arith.addf %x, %x {baechi.pin = "host0", baechi.cost = #baechi.cost<time_ns = {host = 1000}, scratch = 0>} : tensor<64x64xf32>
  %b = arith.mulf %a, %a {baechi.pin = "host1", baechi.cost = #baechi.cost<time_ns = {host = 1000}, scratch = 0>} : tensor<64x64xf32>
  return %b : tensor<64x64xf32>
}

// -----

// Groups that the program asks for stay together.
// CHECK-LABEL: func.func @asked_for
func.func @asked_for(%x: tensor<64x64xf32>, %y: tensor<64x64xf32>) -> (tensor<64x64xf32>, tensor<64x64xf32>) {
  // CHECK: arith.addf {{.*}}baechi.group = "[[GROUP:[^"]*]]"
  // CHECK: arith.subf {{.*}}baechi.group = "[[GROUP]]"
  %a = arith.addf %x, %x {baechi.group = "g", baechi.cost = #baechi.cost<time_ns = {host = 1000}, scratch = 0>} : tensor<64x64xf32>
  %b = arith.subf %y, %y {baechi.group = "g", baechi.cost = #baechi.cost<time_ns = {host = 1000}, scratch = 0>} : tensor<64x64xf32>
  return %a, %b : tensor<64x64xf32>, tensor<64x64xf32>
}

// -----

// A group that the program calls after an operator is not that operator's.
// CHECK-LABEL: func.func @taken(
// CHECK-SAME: baechi.group = "first#1", baechi.name = "first"
func.func @taken(%x: tensor<64x64xf32> {baechi.name = "first"}, %y: tensor<64x64xf32>) -> (tensor<64x64xf32>, tensor<64x64xf32>) {
  // CHECK: arith.addf {{.*}}baechi.group = "first#1"
  // CHECK: arith.subf {{.*}}baechi.group = "first"
  %a = arith.addf %x, %x {baechi.cost = #baechi.cost<time_ns = {host = 100000}, scratch = 0>} : tensor<64x64xf32>
  %b = arith.mulf %a, %a {baechi.cost = #baechi.cost<time_ns = {host = 1000}, scratch = 0>} : tensor<64x64xf32>
  %c = arith.subf %y, %y {baechi.group = "first", baechi.cost = #baechi.cost<time_ns = {host = 100000}, scratch = 0>} : tensor<64x64xf32>
  return %b, %c : tensor<64x64xf32>, tensor<64x64xf32>
}

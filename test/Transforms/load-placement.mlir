// A placement that was saved is found again by names, in the same program and in one that has changed.
// RUN: split-file %s %t
// RUN: baechi-opt %t/step.mlir --baechi-place="mtopo machine=host:2@1MiB budget=0 grouping=none" -o %t/placed.mlir
// RUN: baechi-translate %t/placed.mlir --baechi-to-placement -o %t/placement.json
// RUN: FileCheck %s --check-prefix=FILE < %t/placement.json

// The same program: the same placement, without a word, whatever the placer.
// RUN: baechi-opt %t/step.mlir --baechi-load-placement="file=%t/placement.json machine=host:2@1MiB strict" --baechi-place="metf budget=0" -o %t/again.mlir 2>&1 | count 0
// RUN: baechi-translate %t/again.mlir --baechi-to-placement | sed 's/"algorithm":"[a-z-]*"//' > %t/again.json
// RUN: sed 's/"algorithm":"[a-z-]*"//' %t/placement.json | diff - %t/again.json

// One operator fewer, two more.
// RUN: baechi-opt %t/changed.mlir --baechi-load-placement="file=%t/placement.json machine=host:2@1MiB" -o %t/pinned.mlir 2>&1 | FileCheck %s --check-prefix=WARNING
// RUN: FileCheck %s --check-prefix=PINNED < %t/pinned.mlir
// RUN: baechi-opt %t/pinned.mlir --baechi-place="machine=host:2@1MiB" | baechi-translate --baechi-to-placement -o /dev/null
// RUN: not baechi-opt %t/changed.mlir --baechi-load-placement="file=%t/placement.json machine=host:2@1MiB strict" 2>&1 | FileCheck %s --check-prefix=STRICT

// RUN: not baechi-opt %t/step.mlir --baechi-load-placement="machine=host:2@1MiB" 2>&1 | FileCheck %s --check-prefix=NO-FILE
// RUN: not baechi-opt %t/step.mlir --baechi-load-placement="file=%t/missing.json machine=host:2@1MiB" 2>&1 | FileCheck %s --check-prefix=MISSING
// RUN: not baechi-opt %t/step.mlir --baechi-load-placement="file=%t/unnamed.json machine=host:2@1MiB" 2>&1 | FileCheck %s --check-prefix=UNNAMED
// RUN: not baechi-opt %t/step.mlir --baechi-load-placement="file=%t/twice.json machine=host:2@1MiB" 2>&1 | FileCheck %s --check-prefix=TWICE
// RUN: not baechi-opt %t/step.mlir --baechi-load-placement="file=%t/placement.json machine=host:1@1MiB" 2>&1 | FileCheck %s --check-prefix=DEVICE
// RUN: not baechi-opt %t/other.mlir --baechi-load-placement="file=%t/placement.json machine=host:2@1MiB" 2>&1 | FileCheck %s --check-prefix=OTHER
// RUN: not baechi-opt %t/step.mlir --baechi-constrain=pins=third=host0 --baechi-load-placement="file=%t/placement.json machine=host:2@1MiB" 2>&1 | FileCheck %s --check-prefix=CONFLICT

// Where a name stands for more operators than before, its numbers say nothing:
// a new one in front has the first one's.
// RUN: baechi-opt %t/repeated.mlir --baechi-place="metf machine=host:2@1MiB budget=0" | baechi-translate --baechi-to-placement -o %t/repeated.json
// RUN: baechi-opt %t/repeated.mlir --baechi-load-placement="file=%t/repeated.json machine=host:2@1MiB strict" 2>&1 | FileCheck %s --check-prefix=SAME
// RUN: baechi-opt %t/longer.mlir --baechi-load-placement="file=%t/repeated.json machine=host:2@1MiB" -o %t/longer-pinned.mlir 2>&1 | FileCheck %s --check-prefix=COUNTS
// RUN: FileCheck %s --check-prefix=LONGER < %t/longer-pinned.mlir
// RUN: not baechi-opt %t/longer.mlir --baechi-load-placement="file=%t/repeated.json machine=host:2@1MiB strict" 2>&1 | FileCheck %s --check-prefix=STRICT-COUNTS
// SAME-NOT: {{error|warning}}
// SAME: math.exp {{.*}}baechi.pin = "host0"
// SAME: math.exp {{.*}}baechi.pin = "host1"
// COUNTS: longer.mlir:1:{{.*}}warning: {{.*}}repeated.json is of another version of the program: the operators called 'arg' cannot be told apart, 1 in the file and 2 in the program, left to the placer; the operators called 'math.exp' cannot be told apart, 2 in the file and 3 in the program, left to the placer{{$}}
// STRICT-COUNTS: longer.mlir:1:{{.*}}error: {{.*}}repeated.json is of another version of the program: the operators called 'arg' cannot be told apart, 1 in the file and 2 in the program; the operators called 'math.exp' cannot be told apart, 2 in the file and 3 in the program{{$}}
// LONGER-NOT: baechi.pin
// LONGER: baechi.name = "last", baechi.pin = "host1"
// LONGER-NOT: baechi.pin

// FILE: "ops":[{"id":0,"name":"arg0","device":"host0","start_ns":0},{"id":1,"name":"first","device":"host0"
// FILE-SAME: "name":"third","device":"host1"

// WARNING: changed.mlir:1:{{.*}}warning: {{.*}}placement.json is of another version of the program: only the file has 1 operator (second); only the program has 2 operators (new, newer), left to the placer
// STRICT: changed.mlir:1:{{.*}}error: {{.*}}placement.json is of another version of the program: only the file has 1 operator (second); only the program has 2 operators (new, newer){{$}}
// PINNED: %arg0: tensor<64xf32> {baechi.pin = "host0"}
// PINNED: baechi.name = "first", baechi.pin = "host0"
// PINNED: baechi.name = "new"
// PINNED-NOT: baechi.pin
// PINNED: baechi.name = "third", baechi.pin = "host1"
// NO-FILE: step.mlir:1:{{.*}}error: needs file=, a placement file; --baechi-to-placement of baechi-translate writes one
// MISSING: error: {{.*}}missing.json: {{.*}}No such file
// UNNAMED: error: {{.*}}unnamed.json: ops[0]: has no name, and so cannot be found in another program
// TWICE: error: {{.*}}twice.json: ops[1] 'first'.name: is the name of two operators
// DEVICE: error: {{.*}}placement.json puts 'third' on 'host1', which the machine does not have
// OTHER: error: {{.*}}placement.json names no operator of the program; is it another model's, or are the names lost (keep locations between commands with --mlir-print-debuginfo)?
// CONFLICT: step.mlir:4:{{.*}}error: {{.*}}placement.json puts 'third' on 'host1', but it is pinned to 'host0'; take one of the two away

//--- step.mlir
func.func @step(%x: tensor<64xf32>) -> tensor<64xf32> {
  %0 = arith.addf %x, %x {baechi.name = "first", baechi.cost = #baechi.cost<time_ns = {host = 1000000}, scratch = 0>} : tensor<64xf32>
  %1 = arith.mulf %0, %x {baechi.name = "second", baechi.cost = #baechi.cost<time_ns = {host = 1000000}, scratch = 0>} : tensor<64xf32>
  %2 = arith.mulf %1, %x {baechi.name = "third", baechi.cost = #baechi.cost<time_ns = {host = 500000}, scratch = 0>} : tensor<64xf32>
  return %2 : tensor<64xf32>
}
//--- changed.mlir
func.func @step(%x: tensor<64xf32>) -> tensor<64xf32> {
  %0 = arith.addf %x, %x {baechi.name = "first", baechi.cost = #baechi.cost<time_ns = {host = 1000000}, scratch = 0>} : tensor<64xf32>
  %1 = arith.subf %0, %x {baechi.name = "new", baechi.cost = #baechi.cost<time_ns = {host = 1000000}, scratch = 0>} : tensor<64xf32>
  %2 = arith.subf %1, %x {baechi.name = "newer", baechi.cost = #baechi.cost<time_ns = {host = 1000000}, scratch = 0>} : tensor<64xf32>
  %3 = arith.mulf %2, %x {baechi.name = "third", baechi.cost = #baechi.cost<time_ns = {host = 500000}, scratch = 0>} : tensor<64xf32>
  return %3 : tensor<64xf32>
}
//--- repeated.mlir
func.func @step(%x: tensor<4xf32>) -> tensor<4xf32> {
  %0 = math.exp %x {baechi.pin = "host0", baechi.cost = #baechi.cost<time_ns = {host = 10}, scratch = 0>} : tensor<4xf32>
  %1 = math.exp %0 {baechi.pin = "host1", baechi.cost = #baechi.cost<time_ns = {host = 10}, scratch = 0>} : tensor<4xf32>
  %2 = math.log %1 {baechi.name = "last", baechi.pin = "host1", baechi.cost = #baechi.cost<time_ns = {host = 10}, scratch = 0>} : tensor<4xf32>
  return %2 : tensor<4xf32>
}
//--- longer.mlir
func.func @step(%y: tensor<4xf32>, %x: tensor<4xf32>) -> tensor<4xf32> {
  %n = math.exp %y {baechi.cost = #baechi.cost<time_ns = {host = 10}, scratch = 0>} : tensor<4xf32>
  %s = math.exp %n {baechi.cost = #baechi.cost<time_ns = {host = 10}, scratch = 0>} : tensor<4xf32>
  %1 = math.exp %s {baechi.cost = #baechi.cost<time_ns = {host = 10}, scratch = 0>} : tensor<4xf32>
  %2 = math.log %1 {baechi.name = "last", baechi.cost = #baechi.cost<time_ns = {host = 10}, scratch = 0>} : tensor<4xf32>
  return %2 : tensor<4xf32>
}
//--- other.mlir
func.func @step(%image: tensor<64xf32> {baechi.name = "image"}) -> tensor<64xf32> {
  %0 = arith.addf %image, %image {baechi.name = "conv", baechi.cost = #baechi.cost<time_ns = {host = 1000000}, scratch = 0>} : tensor<64xf32>
  return %0 : tensor<64xf32>
}
//--- unnamed.json
{"format": "baechi-placement", "version": 1, "makespan_ns": 0, "ops": [{"id": 0, "device": "host0", "start_ns": 0}], "transfers": []}
//--- twice.json
{"format": "baechi-placement", "version": 1, "makespan_ns": 0, "ops": [{"id": 0, "name": "first", "device": "host0", "start_ns": 0}, {"id": 1, "name": "first", "device": "host0", "start_ns": 0}], "transfers": []}

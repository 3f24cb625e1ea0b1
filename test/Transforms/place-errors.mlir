// RUN: split-file %s %t
// RUN: not baechi-opt %t/step.mlir --baechi-place=best 2>&1 | FileCheck %s --check-prefix=PLACER
// RUN: not baechi-opt %t/step.mlir --pass-pipeline='builtin.module(baechi-place{placer=best machine=host:2})' 2>&1 | FileCheck %s --check-prefix=PLACER
// RUN: not baechi-opt %t/step.mlir --baechi-place="msct metf" 2>&1 | FileCheck %s --check-prefix=PLACERS
// RUN: not baechi-opt %t/step.mlir --baechi-place="machine=host:2 grouping=colocate+shuffle" 2>&1 | FileCheck %s --check-prefix=GROUPING
// RUN: not baechi-opt %t/step.mlir --baechi-place="machine=host:2 budget=nan" 2>&1 | FileCheck %s --check-prefix=BUDGET
// RUN: not baechi-opt %t/step.mlir --baechi-place="machine=host:2 budget=-1" 2>&1 | FileCheck %s --check-prefix=BUDGET
// RUN: not baechi-opt %t/step.mlir --baechi-place=msct 2>&1 | FileCheck %s --check-prefix=NO-MACHINE
// RUN: not baechi-opt %t/step.mlir --baechi-place="machine=host:0" 2>&1 | FileCheck %s --check-prefix=ZERO
// RUN: not baechi-opt %t/step.mlir --baechi-place="machine=host:2@x" 2>&1 | FileCheck %s --check-prefix=SIZE
// RUN: not baechi-opt %t/step.mlir --baechi-place="machine=host:2@" 2>&1 | FileCheck %s --check-prefix=NO-SIZE
// RUN: not baechi-opt %t/step.mlir --baechi-place="machine=foo:2" 2>&1 | FileCheck %s --check-prefix=UNKNOWN-KIND
// RUN: not baechi-opt %t/step.mlir --baechi-place="machine=%t/missing.json" 2>&1 | FileCheck %s --check-prefix=FILE
// RUN: not baechi-opt %t/step.mlir --baechi-place="machine=%t/step.mlir" 2>&1 | FileCheck %s --check-prefix=NO-JSON
// RUN: not baechi-opt %t/no-cost.mlir --baechi-place="machine=host:2" 2>&1 | FileCheck %s --check-prefix=NO-COST
// RUN: not baechi-opt %t/scratch.mlir --baechi-place="machine=host:2" 2>&1 | FileCheck %s --check-prefix=SCRATCH
// RUN: not baechi-opt %t/pin.mlir --baechi-place="machine=host:2" 2>&1 | FileCheck %s --check-prefix=PIN
// RUN: not baechi-opt %t/kind.mlir --baechi-place="machine=host:2" 2>&1 | FileCheck %s --check-prefix=NO-KIND
// RUN: not baechi-opt %t/conflict.mlir --baechi-place="machine=host:2" 2>&1 | FileCheck %s --check-prefix=CONFLICT

// PLACER: unknown placer 'best'; known: mtopo, mtopo-nonuniform, metf, msct, etf, sct, single, mostly-single, round-robin, even-split, split, expert, post-adjusted, annealing{{$}}
// The option's text has the same words.
// RUN: baechi-opt --help | FileCheck %s --check-prefix=HELP
// HELP: --placer=<string> {{ *}}- mtopo, mtopo-nonuniform, metf, msct, etf, sct, single, mostly-single, round-robin, even-split, split, expert, post-adjusted, annealing{{$}}
// HELP: --placer=<string> {{ *}}- mtopo, mtopo-nonuniform, metf, msct, etf, sct, single, mostly-single, round-robin, even-split, split, expert, post-adjusted, annealing{{$}}
// Every one of them runs.
// RUN: baechi-opt %t/step.mlir --pass-pipeline='builtin.module(baechi-place{placer=mtopo machine=host:2 budget=0},baechi-place{placer=mtopo-nonuniform machine=host:2 budget=0},baechi-place{placer=metf machine=host:2 budget=0},baechi-place{placer=msct machine=host:2 budget=0},baechi-place{placer=etf machine=host:2 budget=0},baechi-place{placer=sct machine=host:2 budget=0},baechi-place{placer=single machine=host:2 budget=0},baechi-place{placer=mostly-single machine=host:2 budget=0},baechi-place{placer=round-robin machine=host:2 budget=0},baechi-place{placer=even-split machine=host:2 budget=0},baechi-place{placer=split machine=host:2 budget=0},baechi-place{placer=post-adjusted machine=host:2 budget=0},baechi-place{placer=annealing machine=host:2 budget=0})' -o /dev/null
// One of the library's has no way to get here what it needs.
// RUN: not baechi-opt %t/step.mlir --baechi-place=min-cut 2>&1 | FileCheck %s --check-prefix=MIN-CUT
// An expert's rules come from a file.
// RUN: not baechi-opt %t/step.mlir --baechi-place="expert machine=host:2" 2>&1 | FileCheck %s --check-prefix=EXPERT
// EXPERT: error: expert: there are no rules: give an expert file, expert=FILE (docs/formats.md)
// RUN: not baechi-opt %t/step.mlir --baechi-place="expert machine=host:2 expert=%t/none.expert" 2>&1 | FileCheck %s --check-prefix=EXPERT-FILE
// EXPERT-FILE: error: {{.*}}none.expert: cannot read: No such file or directory
// RUN: not baechi-opt %t/step.mlir --baechi-place="expert machine=host:2 expert=%t/wrong.expert" 2>&1 | FileCheck %s --check-prefix=EXPERT-DEVICE
// EXPERT-DEVICE: error: {{.*}}wrong.expert:1: unknown device 'gpu7': the devices are host0, host1
// MIN-CUT: error: placer 'min-cut' needs a graph partitioner, which the passes are not linked with; use the tool baechi-place
// PLACERS: more than one placer: 'metf'
// GROUPING: error: unknown grouping step 'shuffle'; known: all, none, colocate, forward, coplace, multilevel, fuse
// BUDGET: error: unknown budget '{{nan|-1}}': use auto, 0 
// NO-MACHINE: error: no machine: give the pass machine=host:2 or a machine file, or the module a 'baechi.machine' attribute
// ZERO: error: machine 'host:0': '0' is not a number of devices from 1 to 4096; write KIND:N or KIND:N@SIZE, like host:2 or host:4@2GiB, or the path of a machine file
// SIZE: error: machine 'host:2@x': 'x' is not a size (such as 512MiB, 1.5GiB, 2GB)
// NO-SIZE: error: machine 'host:2@': '' is not a size
// UNKNOWN-KIND: error: machine 'foo:2': unknown kind 'foo' (known: host, cuda)
// FILE: error: {{.*}}missing.json: {{.*}}No such file
// NO-JSON: error: {{.*}}step.mlir: 
// NO-COST: no-cost.mlir:2:{{.*}}error: 'arith.addf' op has no 'baechi.cost'; run --baechi-annotate-costs before placing
// SCRATCH: scratch.mlir:2:{{.*}}error: 'arith.addf' op needs 9223372036854775807 bytes of scratch, at most 281474976710656 can be placed
// PIN: error: {{.*}}gpu7
// NO-KIND: error: {{.*}}arith.addf
// CONFLICT: error: {{.*}}group 'g' has {{.*}}'arg0' pinned to 'host0' and {{.*}}'arith.addf' pinned to 'host1': a group is on one device, and an argument that is updated in place (as a donated one) is one group with what computes its next value; pin one of them, or all to the same device

//--- step.mlir
func.func @step(%x: tensor<4xf32>) -> tensor<4xf32> {
  %0 = arith.addf %x, %x {baechi.cost = #baechi.cost<time_ns = {host = 10}, scratch = 0>} : tensor<4xf32>
  return %0 : tensor<4xf32>
}
//--- no-cost.mlir
func.func @step(%x: tensor<4xf32>) -> tensor<4xf32> {
  %0 = arith.addf %x, %x : tensor<4xf32>
  return %0 : tensor<4xf32>
}
//--- scratch.mlir
func.func @step(%x: tensor<4xf32>) -> tensor<4xf32> {
  %0 = arith.addf %x, %x {baechi.cost = #baechi.cost<time_ns = {host = 10}, scratch = 9223372036854775807>} : tensor<4xf32>
  return %0 : tensor<4xf32>
}
//--- pin.mlir
func.func @step(%x: tensor<4xf32>) -> tensor<4xf32> {
  %0 = arith.addf %x, %x {baechi.pin = "gpu7", baechi.cost = #baechi.cost<time_ns = {host = 10}, scratch = 0>} : tensor<4xf32>
  return %0 : tensor<4xf32>
}
//--- kind.mlir
func.func @step(%x: tensor<4xf32>) -> tensor<4xf32> {
  %0 = arith.addf %x, %x {baechi.cost = #baechi.cost<time_ns = {cuda = 10}, scratch = 0>} : tensor<4xf32>
  return %0 : tensor<4xf32>
}
//--- conflict.mlir
func.func @step(%x: tensor<4xf32> {baechi.pin = "host0", baechi.group = "g"}) -> tensor<4xf32> {
  %0 = arith.addf %x, %x {baechi.pin = "host1", baechi.group = "g", baechi.cost = #baechi.cost<time_ns = {host = 10}, scratch = 0>} : tensor<4xf32>
  return %0 : tensor<4xf32>
}

//--- wrong.expert
.* = gpu7

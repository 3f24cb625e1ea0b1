// Placed once where the plan fits at once.
// DEFINE: %{remarks} = --remarks-filter="baechi-place-and-plan|baechi-plan-memory"
// RUN: split-file %s %t
// RUN: baechi-opt %t/once.mlir %{remarks} --baechi-place-and-plan="machine=host:2@1MiB" 2>%t/remarks | FileCheck %s
// RUN: FileCheck %s --check-prefix=ONCE < %t/remarks
// The placer as a bare word.
// RUN: baechi-opt %t/once.mlir --baechi-place-and-plan="mtopo machine=host:2@1MiB budget=0" | FileCheck %s --check-prefix=BARE
// BARE: baechi.certificate = #baechi.placement_certificate<placer = "mtopo"
// The same passes one after the other.
// RUN: baechi-opt %t/once.mlir --baechi-place="machine=host:2@1MiB" --baechi-verify-placed --baechi-partition --baechi-plan-memory -o %t/apart.mlir
// RUN: baechi-opt %t/once.mlir --baechi-place-and-plan="machine=host:2@1MiB" | diff %t/apart.mlir -

// CHECK: baechi.machine = #baechi.machine<devices = [<"host0", kind = "host", memory = 1048576>
// CHECK: baechi.certificate = {{.*}}peaks = [49152
// CHECK: module @host0 attributes {baechi.arena = #baechi.arena<bytes = 49152, resident = 16384, live = 49152, limit = 1048576, promised = 49152>
// ONCE-NOT: placed-again
// ONCE: [Analysis] arena | Category:baechi-plan-memory | Function=step | ArenaBytes=49152, Device=host0, LimitBytes=1048576, LiveBytes=49152, Packing="birth, best fit", PromisedBytes=49152
// ONCE-NOT: placed-again

// Where it does not, the limits that the placer sees are lowered by what was
// missing, until it does; the program keeps the true ones.
// RUN: baechi-opt %t/again.mlir --allow-unregistered-dialect %{remarks} --baechi-place-and-plan="machine=host:2@576 budget=0 grouping=none transfers=copy" 2>%t/remarks | FileCheck %s --check-prefix=FITS
// RUN: FileCheck %s --check-prefix=AGAIN < %t/remarks
// FITS: <"host0", kind = "host", memory = 576>
// FITS: module @host0 attributes {{.*}}limit = 576
// FITS: module @host1 attributes {{.*}}limit = 576
// AGAIN: [Missed] placed-again | Category:baechi-place-and-plan | ArenaBytes=640, Device=host1, LimitBytes=576, NextLimitBytes=512, PromisedBytes=576
// AGAIN: [Analysis] arena | Category:baechi-plan-memory | Function=step | ArenaBytes=448, Device=host1, LimitBytes=576
// AGAIN-NOT: placed-again

// A tensor that is lent stays until its last use elsewhere: a device that has no
// room for that lends nothing, and the plan is the one that copies.
// RUN: baechi-opt %t/lends.mlir %{remarks} --baechi-place-and-plan="machine=host:2@1024 budget=0 grouping=none" 2>%t/remarks | FileCheck %s --check-prefix=LENT
// RUN: FileCheck %s --check-prefix=LENDS --allow-empty < %t/remarks
// RUN: baechi-opt %t/lends.mlir %{remarks} --baechi-place-and-plan="machine=host:2@768 budget=0 grouping=none" 2>%t/remarks | FileCheck %s --check-prefix=COPIED
// RUN: FileCheck %s --check-prefix=NOTHING < %t/remarks
// RUN: baechi-opt %t/lends.mlir --baechi-place-and-plan="machine=host:2@1024 budget=0 grouping=none transfers=copy" | FileCheck %s --check-prefix=COPIED
// RUN: not baechi-opt %t/once.mlir --baechi-place-and-plan="machine=host:2 transfers=share" 2>&1 | FileCheck %s --check-prefix=WORD
// LENT: baechi.send {{.*}}lent
// LENDS-NOT: lends-nothing
// COPIED-NOT: lent
// COPIED: baechi.send
// NOTHING: [Missed] lends-nothing | Category:baechi-place-and-plan | Devices=host0
// WORD: error: unknown transfers 'share'; known: lend, copy, network

// When no attempt fits, the error is the first plan's, of the true limits; where
// placers find nothing within these, the leanest plan's, and it says so.
// RUN: not baechi-opt %t/never.mlir --baechi-place-and-plan="machine=host:1@960 budget=0" 2>&1 | FileCheck %s --check-prefix=NEVER
// NEVER: error: no placement was found that fits the memories, with each result beside its operands; of those with {{.*}} more on each device, as much as one operator's results can take over, this is the leanest plan: device 'host0' has 960 bytes (960 B), the plan needs 1024 (1.00 KiB)
// NEVER: note: {{[0-9]+}} bytes at the peak
// NEVER: note: placed {{[2-9]}} times with lower limits, none of the plans fits

// What the first placement refuses is its own error; so is an unknown placer.
// RUN: not baechi-opt %t/once.mlir --baechi-place-and-plan="machine=host:2@1KiB" 2>&1 | FileCheck %s --check-prefix=SMALL
// RUN: not baechi-opt %t/once.mlir --baechi-place-and-plan="machine=host:2 placer=fast" 2>&1 | FileCheck %s --check-prefix=PLACER
// RUN: not baechi-opt %t/once.mlir --baechi-place-and-plan=fast 2>&1 | FileCheck %s --check-prefix=PLACER
// RUN: not baechi-opt %t/once.mlir --baechi-place-and-plan="msct metf" 2>&1 | FileCheck %s --check-prefix=PLACERS
// RUN: not baechi-opt %t/once.mlir --baechi-place-and-plan=min-cut 2>&1 | FileCheck %s --check-prefix=MIN-CUT
// RUN: not baechi-opt %t/once.mlir --baechi-place-and-plan 2>&1 | FileCheck %s --check-prefix=MACHINE
// SMALL: error: no placement can fit the memories
// SMALL-NOT: note: placed
// PLACER: error: unknown placer 'fast'
// PLACERS: error: more than one placer: 'metf'
// MIN-CUT: error: placer 'min-cut' needs a graph partitioner
// MACHINE: error: no machine

// Where operators take five times as long beside others, one device is as fast
// as two and takes their place; not what a person asks for, by a budget or pins.
// RUN: baechi-opt %t/crowded.mlir %{remarks} --baechi-place-and-plan 2>%t/remarks | FileCheck %s --check-prefix=ALONE
// RUN: FileCheck %s --check-prefix=GIVEN-UP < %t/remarks
// RUN: baechi-opt %t/crowded.mlir %{remarks} --baechi-place-and-plan=budget=0 2>%t/remarks | FileCheck %s --check-prefix=ASKED
// RUN: FileCheck %s --check-prefix=KEPT --allow-empty < %t/remarks
// RUN: baechi-opt %t/crowded.mlir --baechi-constrain=pins=exp=host1 --baechi-place-and-plan | FileCheck %s --check-prefix=ASKED
// ALONE: runtime = <step_ns = 0, operator_ns = 0, wake_ns = 0, shared_percent = 500>
// ALONE: winner = "single:host0"
// ALONE: module @host1
// ALONE-NEXT: func.func @step() {
// ALONE-NEXT: return
// GIVEN-UP: [Missed] given-up | Category:baechi-place-and-plan | {{.*}}SingleDeviceNs=20000, StepNs=50{{[0-9]+}}, Winner=
// ASKED: module @host1
// ASKED-NEXT: func.func @step({{.*}}) ->
// KEPT-NOT: given-up

// A GPU runs at once what has few blocks: two are of no use then. What fills one
// is placed on two.
// RUN: baechi-opt %t/gpus.mlir %{remarks} --baechi-place-and-plan 2>%t/remarks | FileCheck %s --check-prefix=ONE-GPU
// RUN: FileCheck %s --check-prefix=GPU-GIVEN-UP < %t/remarks
// RUN: sed 's/cuda_blocks = 100/cuda_blocks = 264/' %t/gpus.mlir | baechi-opt --baechi-place-and-plan | FileCheck %s --check-prefix=TWO-GPUS
// RUN: baechi-opt %t/gpus.mlir --baechi-place-and-plan=budget=0 | FileCheck %s --check-prefix=TWO-GPUS
// ONE-GPU: winner = "single:cuda0"
// ONE-GPU: module @cuda1
// ONE-GPU: func.func @step() {
// GPU-GIVEN-UP: [Missed] given-up | Category:baechi-place-and-plan | {{.*}}SingleDeviceNs=10000, StepNs=13{{[0-9]+}}, Winner=
// TWO-GPUS: module @cuda1
// TWO-GPUS: func.func @step({{.*}}) ->

//--- gpus.mlir
module attributes {baechi.machine = #baechi.machine<devices = [
      <"cuda0", kind = "cuda", memory = 1048576>, <"cuda1", kind = "cuda", memory = 1048576>],
    link_default = <"" -> "", latency_ns = 3000, bytes_per_us = 100000>, link_model = duplex>} {
  func.func private @exp(tensor<4xf32>) -> tensor<4xf32> attributes {baechi.kernel, baechi.cuda_blocks = 100 : i64}
  func.func private @sin(tensor<4xf32>) -> tensor<4xf32> attributes {baechi.kernel, baechi.cuda_blocks = 100 : i64}
  func.func @step(%x: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
    %0 = call @exp(%x) {baechi.cost = #baechi.cost<time_ns = {cuda = 10000}, scratch = 0>} : (tensor<4xf32>) -> tensor<4xf32>
    %1 = call @sin(%x) {baechi.cost = #baechi.cost<time_ns = {cuda = 10000}, scratch = 0>} : (tensor<4xf32>) -> tensor<4xf32>
    return %0, %1 : tensor<4xf32>, tensor<4xf32>
  }
}

//--- crowded.mlir
module attributes {baechi.machine = #baechi.machine<devices = [
      <"host0", kind = "host", memory = 1048576>, <"host1", kind = "host", memory = 1048576>],
    link_default = <"" -> "", latency_ns = 1, bytes_per_us = 100000>, link_model = duplex,
    runtime = <step_ns = 0, operator_ns = 0, wake_ns = 0, shared_percent = 500>>} {
  func.func @step(%x: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
    %a = math.exp %x {baechi.cost = #baechi.cost<time_ns = {host = 10000}, scratch = 0>} : tensor<4xf32> loc("exp")
    %b = math.sin %x {baechi.cost = #baechi.cost<time_ns = {host = 10000}, scratch = 0>} : tensor<4xf32> loc("sin")
    return %a, %b : tensor<4xf32>, tensor<4xf32>
  }
}

//--- once.mlir
func.func @step(%x: tensor<64x64xf32>) -> tensor<64x64xf32> {
  %a = arith.addf %x, %x {baechi.cost = #baechi.cost<time_ns = {host = 10}, scratch = 0>} : tensor<64x64xf32>
  %b = arith.mulf %a, %x {baechi.cost = #baechi.cost<time_ns = {host = 10}, scratch = 0>} : tensor<64x64xf32>
  return %b : tensor<64x64xf32>
}

//--- again.mlir
func.func @step() -> tensor<32xf32> {
  %0 = "x.op0"() {baechi.cost = #baechi.cost<time_ns = {host = 30000}, scratch = 0>} : () -> tensor<32xf32>
  %1 = "x.op1"() {baechi.cost = #baechi.cost<time_ns = {host = 20000}, scratch = 0>} : () -> tensor<48xf32>
  %2 = "x.op2"(%1, %0) {baechi.cost = #baechi.cost<time_ns = {host = 10000}, scratch = 0>} : (tensor<48xf32>, tensor<32xf32>) -> tensor<48xf32>
  %3 = "x.op3"(%1) {baechi.cost = #baechi.cost<time_ns = {host = 20000}, scratch = 0>} : (tensor<48xf32>) -> tensor<16xf32>
  %4 = "x.op4"(%0, %2) {baechi.cost = #baechi.cost<time_ns = {host = 20000}, scratch = 0>} : (tensor<32xf32>, tensor<48xf32>) -> tensor<32xf32>
  %5 = "x.op5"(%4) {baechi.cost = #baechi.cost<time_ns = {host = 20000}, scratch = 0>} : (tensor<32xf32>) -> tensor<16xf32>
  %6 = "x.op6"() {baechi.cost = #baechi.cost<time_ns = {host = 30000}, scratch = 0>} : () -> tensor<32xf32>
  return %6 : tensor<32xf32>
}

//--- lends.mlir
func.func @step(%x: tensor<64xf32> {baechi.pin = "host0"}) -> (tensor<64xf32>, tensor<64xf32>) {
  %0 = math.exp %x {baechi.pin = "host0", baechi.cost = #baechi.cost<time_ns = {host = 10000}, scratch = 0>} : tensor<64xf32>
  %1 = math.log %0 {baechi.pin = "host1", baechi.cost = #baechi.cost<time_ns = {host = 90000}, scratch = 0>} : tensor<64xf32>
  %2 = math.sin %x {baechi.pin = "host0", baechi.cost = #baechi.cost<time_ns = {host = 10000}, scratch = 0>} : tensor<64xf32>
  %3 = math.cos %2 {baechi.pin = "host0", baechi.cost = #baechi.cost<time_ns = {host = 10000}, scratch = 0>} : tensor<64xf32>
  return %1, %3 : tensor<64xf32>, tensor<64xf32>
}

//--- never.mlir
#cost = #baechi.cost<time_ns = {host = 10000}, scratch = 0>
func.func private @exp(%x: tensor<64xf32>) -> (tensor<64xf32> {baechi.may_alias = array<i64: 0>}) attributes {baechi.kernel} {
  %0 = math.exp %x : tensor<64xf32>
  return %0 : tensor<64xf32>
}
func.func private @reverse(tensor<64xf32>) -> tensor<64xf32> attributes {baechi.kernel}
func.func @step(%x: tensor<64xf32>) -> tensor<64xf32> {
  %0 = call @exp(%x) {baechi.cost = #cost} : (tensor<64xf32>) -> tensor<64xf32>
  %1 = call @exp(%0) {baechi.cost = #cost} : (tensor<64xf32>) -> tensor<64xf32>
  %2 = call @reverse(%1) {baechi.cost = #baechi.cost<time_ns = {host = 10000}, scratch = 256>} : (tensor<64xf32>) -> tensor<64xf32>
  return %2 : tensor<64xf32>
}


// What is missing, where, and which pass adds it; nothing is written.
// RUN: split-file %s %t
// RUN: not baechi-translate %t/plain.mlir --baechi-to-graph 2>&1 | FileCheck %s --check-prefix=NO-COST
// RUN: not baechi-translate %t/plain.mlir --baechi-to-dot 2>&1 | FileCheck %s --check-prefix=NO-COST
// RUN: not baechi-translate %t/plain.mlir --baechi-to-machine 2>&1 | FileCheck %s --check-prefix=NO-MACHINE
// RUN: not baechi-translate %t/plain.mlir --baechi-to-placement 2>&1 | FileCheck %s --check-prefix=NO-MACHINE
// RUN: not baechi-translate %t/plain.mlir --baechi-to-manifest 2>&1 | FileCheck %s --check-prefix=NOT-PARTITIONED
// RUN: not baechi-translate %t/plain.mlir --baechi-to-trace 2>&1 | FileCheck %s --check-prefix=NOT-PARTITIONED
// RUN: not baechi-translate %t/unplaced.mlir --baechi-to-placement 2>&1 | FileCheck %s --check-prefix=NO-DEVICE
// RUN: not baechi-translate %t/unplaced.mlir --baechi-to-device-map 2>&1 | FileCheck %s --check-prefix=NO-DEVICE
// RUN: not baechi-translate %t/no-start.mlir --baechi-to-placement 2>&1 | FileCheck %s --check-prefix=NO-START
// RUN: not baechi-translate %t/elsewhere.mlir --baechi-to-placement 2>&1 | FileCheck %s --check-prefix=ELSEWHERE
// RUN: not baechi-translate %t/kind.mlir --baechi-to-placement 2>&1 | FileCheck %s --check-prefix=NO-KIND
// RUN: not baechi-translate %t/transfer.mlir --baechi-to-placement 2>&1 | FileCheck %s --check-prefix=TRANSFER

// NO-COST: plain.mlir:2:{{.*}}error: 'arith.addf' op has no 'baechi.cost'; run --baechi-annotate-costs before placing
// NO-MACHINE: error: no machine: give the pass machine=host:2
// NOT-PARTITIONED: error: no 'baechi.machine'; run --baechi-place and --baechi-partition
// NO-DEVICE: unplaced.mlir:3:{{.*}}error: 'sum' is on no device; run --baechi-place
// NO-START: no-start.mlir:3:{{.*}}error: 'sum' has no 'baechi.start'; run --baechi-place
// ELSEWHERE: elsewhere.mlir:3:{{.*}}error: 'sum' is on 'b', which the machine does not have
// NO-KIND: kind.mlir:3:{{.*}}error: 'sum' cannot run on 'a': no time for kind 'host'
// TRANSFER: transfer.mlir:3:{{.*}}error: 'sum' has a transfer to 'b', which the machine does not have

//--- plain.mlir
func.func @step(%x: tensor<4xf32>) -> tensor<4xf32> {
  %0 = arith.addf %x, %x : tensor<4xf32>
  return %0 : tensor<4xf32>
}
//--- unplaced.mlir
module attributes {baechi.machine = #baechi.machine<devices = [<"a", kind = "host", memory = 1>], link_model = duplex>} {
  func.func @step() {
    %0 = tensor.empty() {baechi.name = "sum", baechi.cost = #baechi.cost<time_ns = {host = 1}, scratch = 0>} : tensor<4xf32>
    return
  }
}
//--- no-start.mlir
module attributes {baechi.machine = #baechi.machine<devices = [<"a", kind = "host", memory = 1>], link_model = duplex>} {
  func.func @step() {
    %0 = tensor.empty() {baechi.name = "sum", baechi.device = "a", baechi.cost = #baechi.cost<time_ns = {host = 1}, scratch = 0>} : tensor<4xf32>
    return
  }
}
//--- elsewhere.mlir
module attributes {baechi.machine = #baechi.machine<devices = [<"a", kind = "host", memory = 1>], link_model = duplex>} {
  func.func @step() {
    %0 = tensor.empty() {baechi.name = "sum", baechi.device = "b", baechi.start = 0 : i64, baechi.cost = #baechi.cost<time_ns = {host = 1}, scratch = 0>} : tensor<4xf32>
    return
  }
}
//--- kind.mlir
module attributes {baechi.machine = #baechi.machine<devices = [<"a", kind = "host", memory = 1>], link_model = duplex>} {
  func.func @step() {
    %0 = tensor.empty() {baechi.name = "sum", baechi.device = "a", baechi.start = 0 : i64, baechi.cost = #baechi.cost<time_ns = {cuda = 1}, scratch = 0>} : tensor<4xf32>
    return
  }
}
//--- transfer.mlir
module attributes {baechi.machine = #baechi.machine<devices = [<"a", kind = "host", memory = 1>], link_model = duplex>} {
  func.func @step() {
    %0 = tensor.empty() {baechi.name = "sum", baechi.device = "a", baechi.start = 0 : i64, baechi.sends = [#baechi.transfer<result = 0, from = "a", to = "b", start = 0, end = 1>], baechi.cost = #baechi.cost<time_ns = {host = 1}, scratch = 0>} : tensor<4xf32>
    return
  }
}

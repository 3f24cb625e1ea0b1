// RUN: baechi-opt %s --baechi-constrain="pins=left=host1" --baechi-place="msct machine=host:2@1MiB" -o %t.mlir --mlir-print-debuginfo 2>/dev/null
// RUN: baechi-opt %t.mlir --baechi-explain=left 2>&1 >/dev/null | FileCheck %s --check-prefix=ONE
// RUN: baechi-opt %t.mlir --pass-pipeline='builtin.module(baechi-explain{name=left machine=host:2@1MiB})' 2>&1 >/dev/null | FileCheck %s --check-prefix=ONE
// RUN: baechi-opt %t.mlir --baechi-explain='*t' 2>&1 >/dev/null | FileCheck %s --check-prefix=SET
// The program stays as it is.
// RUN: baechi-opt %t.mlir --baechi-explain -o - --mlir-print-debuginfo 2>/dev/null | diff %t.mlir -

// ONE: model.py:3:1: remark: operator 1 'left' is on host1 from
// ONE: host0 {{.*}}excluded: it is pinned to host1
// ONE: It is pinned to host1.

// SET: remark: 3 operators
// SET: remark: operator 0 'input' is on
// SET: model.py:3:1: remark: operator 1 'left'
// SET: model.py:4:1: remark: operator 2 'right'
func.func @step(%x: tensor<64x64xf32> {baechi.name = "input"}) -> tensor<64x64xf32> {
  %a = arith.addf %x, %x {baechi.name = "left", baechi.cost = #baechi.cost<time_ns = {host = 1000000}, scratch = 0>} : tensor<64x64xf32> loc("model.py":3:1)
  %b = arith.mulf %x, %x {baechi.name = "right", baechi.cost = #baechi.cost<time_ns = {host = 1000000}, scratch = 0>} : tensor<64x64xf32> loc("model.py":4:1)
  %c = arith.subf %a, %b {baechi.name = "sum", baechi.cost = #baechi.cost<time_ns = {host = 10}, scratch = 0>} : tensor<64x64xf32> loc("model.py":5:1)
  return %c : tensor<64x64xf32>
}

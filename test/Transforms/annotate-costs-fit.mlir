// Kernels that a profile lacks: a roofline fitted to its rows, and a word about it.
// RUN: split-file %s %t
// RUN: baechi-opt %t/step.mlir --baechi-annotate-costs="profile=%t/rows.json" 2>&1 | FileCheck %s --check-prefix=FIT
// RUN: baechi-opt %t/step.mlir --baechi-annotate-costs="profile=%t/rows.json roofline=host:1:1:0" 2>&1 | FileCheck %s --check-prefix=DESCRIBED
// RUN: baechi-opt %t/step.mlir --baechi-annotate-costs="profile=%t/few.json" 2>&1 | FileCheck %s --check-prefix=FEW
// RUN: not baechi-opt %t/step.mlir --baechi-annotate-costs="profile=%t/negative.json" 2>&1 | FileCheck %s --check-prefix=NEGATIVE

// The rows are 1000 ns + max(flops / 10, bytes / 20) ns: 10 GFLOP/s and 20 GB/s. @add moves 3 * 4000 bytes.
// FIT: step.mlir:5:{{.*}}warning: the profile has no row on 'host' for 2 of 2 operators, estimated by a roofline fitted to 5 rows (10.0 GFLOP/s, 20.0 GB/s, 1000 ns; median error 0 %): add, arith.mulf
// FIT: call @add{{.*}}#baechi.cost<time_ns = {cuda = 5020, host = 1600}, scratch = 0, estimated = ["host"]>
// FIT: arith.mulf{{.*}}estimated = ["host"]>
// DESCRIBED: warning: the profile has no row on 'host' for 2 of 2 operators, estimated by the described roofline: add, arith.mulf
// DESCRIBED: call @add{{.*}}host = 12000}
// FEW: warning: the profile has no row on 'host' for 2 of 2 operators, estimated by an assumed roofline: add, arith.mulf
// FEW: call @add{{.*}}host = 1400}
// NEGATIVE: error: {{.*}}negative.json: rows[0] needs 'flops', a non-negative integer

//--- step.mlir
func.func private @add(%x: tensor<1000xf32>, %y: tensor<1000xf32>) -> tensor<1000xf32> attributes {baechi.kernel} {
  %0 = arith.addf %x, %y : tensor<1000xf32>
  return %0 : tensor<1000xf32>
}
func.func @step(%x: tensor<1000xf32>, %y: tensor<1000xf32>) -> tensor<1000xf32> {
  %0 = call @add(%x, %y) : (tensor<1000xf32>, tensor<1000xf32>) -> tensor<1000xf32>
  %1 = arith.mulf %0, %y : tensor<1000xf32>
  return %1 : tensor<1000xf32>
}
//--- rows.json
{"format": "baechi-profile", "version": 1, "rows": [
  {"kernel": "a", "hash": "a", "implementation": "generated", "kind": "host", "median_ns": 1100, "spread_ns": 0, "samples": 9, "scratch_bytes": 0, "flops": 500, "bytes": 2000},
  {"kernel": "b", "hash": "b", "implementation": "generated", "kind": "host", "median_ns": 11000, "spread_ns": 0, "samples": 9, "scratch_bytes": 0, "flops": 20000, "bytes": 200000},
  {"kernel": "c", "hash": "c", "implementation": "generated", "kind": "host", "median_ns": 2000, "spread_ns": 0, "samples": 9, "scratch_bytes": 0, "flops": 10000, "bytes": 2000},
  {"kernel": "d", "hash": "d", "implementation": "generated", "kind": "host", "median_ns": 101000, "spread_ns": 0, "samples": 9, "scratch_bytes": 0, "flops": 1000000, "bytes": 200000},
  {"kernel": "e", "hash": "e", "implementation": "generated", "kind": "host", "median_ns": 6000, "spread_ns": 0, "samples": 9, "scratch_bytes": 0, "flops": 0, "bytes": 100000}]}
//--- few.json
{"format": "baechi-profile", "version": 1, "rows": [
  {"kernel": "a", "hash": "a", "implementation": "generated", "kind": "host", "median_ns": 1100, "spread_ns": 0, "samples": 9, "scratch_bytes": 0}]}
//--- negative.json
{"format": "baechi-profile", "version": 1, "rows": [
  {"kernel": "a", "hash": "a", "implementation": "generated", "kind": "host", "median_ns": 1100, "spread_ns": 0, "samples": 9, "scratch_bytes": 0, "flops": -1, "bytes": 2}]}

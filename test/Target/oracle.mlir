// What the placers write into the IR is a placement that the independent oracle
// accepts: a training step of an MLP, on devices that each hold half of it.

// RUN: baechi-opt %fixtures/mlp_tiny.mlir --baechi-form-kernels --baechi-kernel-scratch --baechi-annotate-costs --baechi-colocate -o %t.mlir
// RUN: baechi-translate %t.mlir --baechi-to-graph -o %t.graph.json

// RUN: baechi-opt %t.mlir --baechi-place="msct machine=host:2@48KiB" -o %t.msct.mlir
// RUN: baechi-translate %t.msct.mlir --baechi-to-graph | diff %t.graph.json -
// RUN: baechi-translate %t.msct.mlir --baechi-to-machine -o %t.msct.machine.json
// RUN: baechi-translate %t.msct.mlir --baechi-to-placement -o %t.msct.json
// RUN: %python %oracle %t.graph.json %t.msct.machine.json %t.msct.json | FileCheck %s

// RUN: baechi-opt %t.mlir --baechi-place="metf budget=0 machine=host:3" -o %t.metf.mlir
// RUN: baechi-translate %t.metf.mlir --baechi-to-machine -o %t.metf.machine.json
// RUN: baechi-translate %t.metf.mlir --baechi-to-placement -o %t.metf.json
// RUN: %python %oracle %t.graph.json %t.metf.machine.json %t.metf.json | FileCheck %s

// RUN: baechi-opt %t.mlir --baechi-place="mtopo budget=0 machine=host:4" -o %t.mtopo.mlir
// RUN: baechi-translate %t.mtopo.mlir --baechi-to-machine -o %t.mtopo.machine.json
// RUN: baechi-translate %t.mtopo.mlir --baechi-to-placement -o %t.mtopo.json
// RUN: %python %oracle %t.graph.json %t.mtopo.machine.json %t.mtopo.json | FileCheck %s

// CHECK-NOT: violation
// CHECK: makespan

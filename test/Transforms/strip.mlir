// The example of the pass's description.
// RUN: baechi-opt %s --baechi-strip --split-input-file | FileCheck %s
// RUN: baechi-opt %s --baechi-strip=plan --split-input-file | FileCheck %s --check-prefix=PLAN
// RUN: baechi-opt %s --baechi-strip=all --split-input-file | FileCheck %s --check-prefix=ALL
// RUN: baechi-opt %s --pass-pipeline="builtin.module(baechi-strip{what=all keep={baechi.group,baechi.cost}})" --dump-pass-pipeline --split-input-file -o %t 2>&1 | FileCheck %s --check-prefix=PIPELINE
// RUN: not baechi-opt %s --baechi-strip=everything 2>&1 | FileCheck %s --check-prefix=UNKNOWN
// RUN: not baechi-opt %s --baechi-strip=keep=baechi.name 2>&1 | FileCheck %s --check-prefix=KEEP

// ALL-NOT: baechi
// PIPELINE: baechi-strip{keep={baechi.group,baechi.cost} what=all}
// KEEP: cannot keep 'baechi.name'; known: baechi.device, baechi.start, baechi.sends, baechi.certificate, baechi.machine, baechi.cost, baechi.group, baechi.pin, baechi.implementation, baechi.kernel_scratch
// UNKNOWN: cannot strip 'everything'; known: plan, annotations, all

// CHECK-LABEL: func.func @step(%{{.*}}: tensor<4xf32> {baechi.name = "x"}) -> tensor<4xf32> {
// CHECK-NEXT: arith.addf %{{[a-z0-9]+}}, %{{[a-z0-9]+}} : tensor<4xf32>
// PLAN-LABEL: func.func @step(%{{.*}}: tensor<4xf32> {baechi.name = "x"}) -> tensor<4xf32> {
// PLAN-NEXT: arith.addf %{{[a-z0-9]+}}, %{{[a-z0-9]+}} {baechi.cost = #baechi.cost<time_ns = {host = 200}, scratch = 0>} : tensor<4xf32>
func.func @step(%x: tensor<4xf32> {baechi.device = "host0", baechi.name = "x"}) -> tensor<4xf32> attributes {baechi.certificate = #baechi.placement_certificate<placer = "msct", winner = "msct", makespan = 200, lower_bound = 200, bound = "path", single_device = 200, operators = 2, groups = 2>} {
  %0 = arith.addf %x, %x {baechi.cost = #baechi.cost<time_ns = {host = 200}, scratch = 0>, baechi.device = "host0", baechi.start = 0 : i64} : tensor<4xf32>
  return %0 : tensor<4xf32>
}

// -----

// Attributes of other dialects, and of a name that only begins alike, stay.
// CHECK: module attributes {other.note = "kept"} {
// CHECK: func.func private @kernel(tensor<4xf32>) -> (tensor<4xf32> {baechi.may_alias = array<i64: 0>}) attributes {baechi.kernel, other.note = "kept"}
// ALL: module attributes {other.note = "kept"} {
// ALL: func.func private @kernel(tensor<4xf32>) -> tensor<4xf32> attributes {other.note = "kept"}
module attributes {other.note = "kept", baechi.machine = #baechi.machine<devices = [<"a", kind = "host", memory = 1024>], link_model = unlimited>} {
  func.func private @kernel(tensor<4xf32>) -> (tensor<4xf32> {baechi.may_alias = array<i64: 0>})
      attributes {baechi.kernel, baechi.kernel_scratch = 64 : i64, baechi.implementation = "generated", other.note = "kept"}
}

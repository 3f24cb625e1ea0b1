// What bytecode carries equals the text: every attribute, type and operation of
// the dialect (ops.mlir), and a program at each phase.
// DEFINE: %{place} = --baechi-annotate-costs --baechi-colocate --baechi-place="msct machine=host:2@1GiB budget=0"

// RUN: baechi-opt %S/ops.mlir -o %t.text
// RUN: baechi-opt %S/ops.mlir --emit-bytecode -o %t.bytecode
// RUN: baechi-opt %t.bytecode | cmp - %t.text

// RUN: baechi-opt %fixtures/mlp_tiny.mlir --baechi-form-kernels %{place} -o %t.text
// RUN: baechi-opt %t.text --emit-bytecode | baechi-opt | cmp - %t.text
// RUN: baechi-opt %t.text --baechi-partition --baechi-plan-memory -o %t.planned
// RUN: baechi-opt %t.planned --emit-bytecode | baechi-opt | cmp - %t.planned
// RUN: FileCheck %s < %t.planned
// CHECK: #baechi.arena
// CHECK: baechi.recv

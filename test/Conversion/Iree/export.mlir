// A placed program as IREE's input: one transfer a tensor and device, barriers
// where own and received operands meet, everything pinned.
// RUN: baechi-opt %s --baechi-export-iree --split-input-file --mlir-print-local-scope | FileCheck %s --implicit-check-not=baechi.
// The same command gives the same text; what it wrote parses again.
// RUN: baechi-opt %s --baechi-export-iree --split-input-file -o %t.first
// RUN: baechi-opt %s --baechi-export-iree --split-input-file | diff %t.first -
// RUN: baechi-opt %t.first --allow-unregistered-dialect --split-input-file -o /dev/null
// A given target replaces its kind's own, the others stay. Devices number the
// targets of a kind.
// RUN: baechi-opt %s --baechi-export-iree="devices=host=hip" --split-input-file | FileCheck %s --check-prefix=TARGETS
// Operators are named for IREE's own dumps.
// RUN: baechi-opt %s --baechi-export-iree --split-input-file --mlir-print-debuginfo --mlir-print-local-scope | FileCheck %s --check-prefix=NAMES

// CHECK: "util.global"() <{initial_value = #hal.device.alias<"local"[0]> : !hal.device, sym_name = "host0", sym_visibility = "private", type = !hal.device}> : () -> ()
// CHECK-NEXT: "util.global"() <{initial_value = #hal.device.alias<"local"[1]> : !hal.device, sym_name = "host1", sym_visibility = "private", type = !hal.device}> : () -> ()
// TARGETS: #hal.device.alias<"hip"[0]>
// TARGETS: #hal.device.alias<"hip"[1]>

// CHECK-LABEL: func.func @step(
// CHECK-SAME: %[[X:[a-z0-9]+]]: tensor<8xf32> {iree.abi.affinity = #hal.device.affinity<@host0>}, %[[Y:[a-z0-9]+]]: tensor<8xf32> {iree.abi.affinity = #hal.device.affinity<@host0>})
// CHECK-SAME: -> (tensor<8xf32> {iree.abi.affinity = #hal.device.affinity<@host0>}, tensor<8xf32> {iree.abi.affinity = #hal.device.affinity<@host1>}, tensor<8xf32> {iree.abi.affinity = #hal.device.affinity<@host0>})
// CHECK-NEXT: %[[X1:.*]] = "flow.tensor.transfer"(%[[X]]) <{operandSegmentSizes = array<i32: 1, 0>, target = #hal.device.affinity<@host1>}> : (tensor<8xf32>) -> tensor<8xf32>
// CHECK-NEXT: %[[A:.*]] = arith.addf %[[X1]], %[[X1]]
// The second reader on host1 finds x there.
// CHECK-NEXT: %[[AB:.*]] = "flow.tensor.barrier"(%[[A]]) <{target = #hal.device.affinity<@host1>}>
// CHECK-NEXT: %[[B:.*]] = arith.mulf %[[AB]], %[[X1]]
// An operator whose operands are all its own has none.
// CHECK-NEXT: %[[C:.*]] = arith.subf %[[X]], %[[Y]]
// CHECK-NEXT: %[[CB:.*]] = "flow.tensor.barrier"(%[[C]]) <{target = #hal.device.affinity<@host0>}>
// CHECK-NEXT: %[[B0:.*]] = "flow.tensor.transfer"(%[[B]]) <{operandSegmentSizes = array<i32: 1, 0>, target = #hal.device.affinity<@host0>}>
// CHECK-NEXT: %[[D:.*]] = arith.addf %[[CB]], %[[B0]]
// CHECK-NEXT: return %[[D]], %[[B]], %[[X]]
// NAMES: arith.addf {{.*}} loc("first"
// NAMES: arith.mulf {{.*}} loc("arith.mulf"
module attributes {baechi.machine = #baechi.machine<devices = [<"host0", kind = "host", memory = 1048576>, <"host1", kind = "host", memory = 1048576>], link_default = <"" -> "", latency_ns = 1, bytes_per_us = 1>, link_model = sequential>} {
  func.func @step(%x: tensor<8xf32> {baechi.device = "host0", baechi.name = "x"}, %y: tensor<8xf32> {baechi.device = "host0"})
      -> (tensor<8xf32> {baechi.name = "d"}, tensor<8xf32>, tensor<8xf32>) attributes {baechi.certificate = #baechi.placement_certificate<placer = "msct", winner = "msct", makespan = 4, lower_bound = 1, bound = "path", single_device = 4, operators = 4, groups = 4>} {
    %a = arith.addf %x, %x {baechi.device = "host1", baechi.start = 0 : i64, baechi.name = "first"} : tensor<8xf32>
    %b = arith.mulf %a, %x {baechi.device = "host1", baechi.start = 1 : i64} : tensor<8xf32>
    %c = arith.subf %x, %y {baechi.device = "host0", baechi.start = 0 : i64} : tensor<8xf32>
    %d = arith.addf %c, %b {baechi.device = "host0", baechi.start = 2 : i64} : tensor<8xf32>
    return %d, %b, %x : tensor<8xf32>, tensor<8xf32>, tensor<8xf32>
  }
}

// -----

// Kernels stay calls, views are made again where they are read, constants and
// what is computed of them go to each reader, uninitialized tensors and splats
// nowhere; regions read what was received.

// CHECK: sym_name = "a b"
// CHECK-LABEL: func.func @views(
// CHECK-SAME: %[[X:[a-z0-9]+]]: tensor<2x4xf32> {iree.abi.affinity = #hal.device.affinity<@"a b">}
// CHECK-DAG: %[[ZERO:.*]] = arith.constant dense<0.000000e+00> : tensor<8xf32>
// CHECK-DAG: %[[C:.*]] = arith.constant dense<[1.000000e+00, {{.*}}]> : tensor<8xf32>
// CHECK: %[[E:.*]] = tensor.empty() : tensor<8xf32>
// CHECK: %[[N:.*]] = call @iota()
// CHECK: %[[XG:.*]] = "flow.tensor.transfer"(%[[X]]) <{{.*}}target = #hal.device.affinity<@gpu>}> : (tensor<2x4xf32>)
// CHECK-NEXT: %[[VG:.*]] = tensor.collapse_shape %[[XG]]
// CHECK-NEXT: %[[CG:.*]] = "flow.tensor.transfer"(%[[C]]) <{{.*}}target = #hal.device.affinity<@gpu>}>
// CHECK-NEXT: %[[NG:.*]] = "flow.tensor.transfer"(%[[N]]) <{{.*}}target = #hal.device.affinity<@gpu>}>
// CHECK-NEXT: %[[A:.*]] = linalg.map ins(%[[VG]], %[[CG]], %[[NG]], %[[ZERO]] : {{.*}}) outs(%[[E]]
// CHECK: %[[NA:.*]] = "flow.tensor.transfer"(%[[N]]) <{{.*}}target = #hal.device.affinity<@"a b">}>
// CHECK-NEXT: %[[B:.*]] = arith.addf %{{.*}}, %[[NA]]
// CHECK-NEXT: %[[AA:.*]] = "flow.tensor.transfer"(%[[A]]) <{{.*}}target = #hal.device.affinity<@"a b">}>
// CHECK-NEXT: %[[BB:.*]] = "flow.tensor.barrier"(%[[B]]) <{target = #hal.device.affinity<@"a b">}>
// CHECK-NEXT: scf.for {{.*}} iter_args(%{{.*}} = %[[AA]])
// CHECK: arith.addf %{{.*}}, %[[BB]]
// CHECK: return %{{.*}}, %[[CA:.*]] : tensor<8xf32>, tensor<8xf32>
// CHECK: func.func private @iota() -> tensor<8xf32> {
// TARGETS: #hal.device.alias<"hip"[0]>
// TARGETS: #hal.device.alias<"cuda"[0]>
module attributes {baechi.machine = #baechi.machine<devices = [<"a b", kind = "host", memory = 1048576>, <"gpu", kind = "cuda", memory = 1048576>], link_default = <"" -> "", latency_ns = 1, bytes_per_us = 1>, link_model = sequential>} {
  func.func @views(%x: tensor<2x4xf32> {baechi.device = "a b"}) -> (tensor<8xf32>, tensor<8xf32>) {
    %zero = arith.constant dense<0.0> : tensor<8xf32>
    %c = arith.constant dense<[1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0]> : tensor<8xf32>
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c3 = arith.constant 3 : index
    %e = tensor.empty() {baechi.device = "a b"} : tensor<8xf32>
    %n = call @iota() {baechi.device = "a b"} : () -> tensor<8xf32>
    %v = tensor.collapse_shape %x [[0, 1]] : tensor<2x4xf32> into tensor<8xf32>
    %a = linalg.map ins(%v, %c, %n, %zero : tensor<8xf32>, tensor<8xf32>, tensor<8xf32>, tensor<8xf32>) outs(%e : tensor<8xf32>)
        {baechi.device = "gpu"} (%0: f32, %1: f32, %2: f32, %3: f32, %o: f32) {
      %s = arith.addf %0, %1 : f32
      %t = arith.addf %s, %2 : f32
      linalg.yield %t : f32
    }
    %b = arith.addf %v, %n {baechi.device = "a b"} : tensor<8xf32>
    %l = scf.for %i = %c0 to %c3 step %c1 iter_args(%it = %a) -> tensor<8xf32> {
      %next = arith.addf %it, %b : tensor<8xf32>
      scf.yield %next : tensor<8xf32>
    } {baechi.device = "a b"}
    return %l, %c : tensor<8xf32>, tensor<8xf32>
  }
  func.func private @iota() -> (tensor<8xf32> {baechi.may_alias = array<i64>}) attributes {baechi.kernel} {
    %e = tensor.empty() : tensor<8xf32>
    %0 = linalg.generic {indexing_maps = [affine_map<(d0) -> (d0)>], iterator_types = ["parallel"]} outs(%e : tensor<8xf32>) {
    ^bb0(%o: f32):
      %i = linalg.index 0 : index
      %j = arith.index_cast %i : index to i32
      %f = arith.sitofp %j : i32 to f32
      linalg.yield %f : f32
    } -> tensor<8xf32>
    return %0 : tensor<8xf32>
  }
}

// -----

// A kernel that inserts into a fresh tensor is one a device, with that tensor
// pinned; other kernels are shared.

// CHECK-LABEL: func.func @inserts(
// CHECK: call @pad_host0(
// CHECK: call @double(
// CHECK: call @pad_host1(
// CHECK: call @double(
// CHECK: func.func private @pad_host1(%[[ARG:.*]]: tensor<4xf32>)
// CHECK: %[[FILL:.*]] = linalg.fill
// CHECK: %[[DEST:.*]] = "flow.tensor.transfer"(%[[FILL]]) <{{.*}}target = #hal.device.affinity<@host1>}>
// CHECK: tensor.insert_slice %[[ARG]] into %[[DEST]]
// CHECK: func.func private @pad_host0(%[[ARG:.*]]: tensor<4xf32>)
// CHECK: "flow.tensor.transfer"({{.*}}) <{{.*}}target = #hal.device.affinity<@host0>}>
// CHECK: func.func private @double(
// CHECK-NOT: flow.
module attributes {baechi.machine = #baechi.machine<devices = [<"host0", kind = "host", memory = 1048576>, <"host1", kind = "host", memory = 1048576>], link_default = <"" -> "", latency_ns = 1, bytes_per_us = 1>, link_model = sequential>} {
  func.func @inserts(%x: tensor<4xf32> {baechi.device = "host0"}, %y: tensor<4xf32> {baechi.device = "host1"}) -> (tensor<8xf32>, tensor<8xf32>) {
    %a = call @pad(%x) {baechi.device = "host0"} : (tensor<4xf32>) -> tensor<8xf32>
    %b = call @double(%a) {baechi.device = "host0"} : (tensor<8xf32>) -> tensor<8xf32>
    %c = call @pad(%y) {baechi.device = "host1"} : (tensor<4xf32>) -> tensor<8xf32>
    %d = call @double(%c) {baechi.device = "host1"} : (tensor<8xf32>) -> tensor<8xf32>
    return %b, %d : tensor<8xf32>, tensor<8xf32>
  }
  func.func private @pad(%x: tensor<4xf32>) -> tensor<8xf32> attributes {baechi.kernel} {
    %zero = arith.constant 0.0 : f32
    %e = tensor.empty() : tensor<8xf32>
    %f = linalg.fill ins(%zero : f32) outs(%e : tensor<8xf32>) -> tensor<8xf32>
    %0 = tensor.insert_slice %x into %f[2] [4] [1] : tensor<4xf32> into tensor<8xf32>
    return %0 : tensor<8xf32>
  }
  func.func private @double(%x: tensor<8xf32>) -> tensor<8xf32> attributes {baechi.kernel} {
    %0 = arith.addf %x, %x : tensor<8xf32>
    return %0 : tensor<8xf32>
  }
}

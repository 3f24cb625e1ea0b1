// Steps of any dialect are annotated, placed and partitioned with their meaning
// kept, and the strip gives them back byte for byte.
// DEFINE: %{print} = --allow-unregistered-dialect --split-input-file
// DEFINE: %{place} = %{print} --baechi-annotate-costs --baechi-colocate --baechi-place="metf machine=host:2@1GiB budget=0"

// RUN: baechi-opt %s %{print} -o %t.original
// RUN: baechi-opt %s %{place} -o %t.placed
// RUN: baechi-opt %t.placed %{print} --baechi-strip=keep=baechi.pin -o %t.stripped
// RUN: cmp %t.original %t.stripped
// RUN: baechi-opt %t.placed %{print} --baechi-verify-placed --baechi-partition --baechi-verify-partitioned --baechi-plan-memory --baechi-verify-partitioned | FileCheck %s

// An llvm.func: scalars cross devices as tensors do, and what is left of it is a
// func.func.
// CHECK-LABEL: func.func private @scalars(i32 {baechi.device = "host0",
// CHECK-SAME: i32 {baechi.device = "host1",
// CHECK: module @host0
// CHECK: baechi.recv from "host1" {{.*}} : !baechi.future<i32>
// CHECK: llvm.add
// CHECK: module @host1
// CHECK: baechi.send %{{.*}} to "host0" {{.*}} : i32
llvm.func @scalars(%x: i32 {baechi.pin = "host0", llvm.noundef}, %y: i32 {baechi.pin = "host1"}) -> i32 {
  %c = llvm.mlir.constant(3 : i32) : i32
  %0 = llvm.mul %x, %c : i32
  %1 = llvm.add %0, %y : i32
  %2 = llvm.sub %1, %0 : i32
  llvm.return %2 : i32
}

// -----

// Loads and stores of one memory stay on one device, in their order, however
// independent their operands are; globals go where they are used.
// CHECK-LABEL: func.func private @memory(
// CHECK: module @host0
// CHECK: llvm.func internal @swap
// CHECK: llvm.mlir.global internal @state
// CHECK: llvm.call @swap
// CHECK: llvm.call @swap
// CHECK: module @host1
// CHECK-NOT: @swap
llvm.mlir.global internal @state(0 : i64) : i64
llvm.func @memory(%x: i64, %y: i64) -> i64 {
  %0 = llvm.call @swap(%x) : (i64) -> i64
  %1 = llvm.mul %y, %0 : i64
  %2 = llvm.call @swap(%1) : (i64) -> i64
  llvm.return %2 : i64
}
llvm.func internal @swap(%x: i64) -> i64 attributes {sym_visibility = "private"} {
  %p = llvm.mlir.addressof @state : !llvm.ptr
  llvm.store %x, %p : i64, !llvm.ptr
  %0 = llvm.load %p : !llvm.ptr -> i64
  llvm.store %0, %p : i64, !llvm.ptr
  llvm.return %0 : i64
}

// -----

// The state of a program: read, written and read again on one device.
// CHECK-LABEL: func.func private @counter(
// CHECK: module @host0
// CHECK: ml_program.global private mutable @steps
// CHECK: ml_program.global_load @steps
// CHECK: ml_program.global_store @steps
// CHECK: ml_program.global_load @steps
ml_program.global private mutable @steps(dense<0> : tensor<4xi32>) : tensor<4xi32>
func.func @counter(%x: tensor<4xi32>) -> (tensor<4xi32>, tensor<4xi32>) {
  %0 = ml_program.global_load @steps : tensor<4xi32>
  %1 = arith.addi %0, %x : tensor<4xi32>
  ml_program.global_store @steps = %1 : tensor<4xi32>
  %2 = ml_program.global_load @steps : tensor<4xi32>
  return %2, %0 : tensor<4xi32>, tensor<4xi32>
}

// -----

// Loops and branches are operators as a whole; what their regions call comes
// along, once a device, with what it calls in turn.
// CHECK-LABEL: func.func private @control(
// CHECK: module @host
// CHECK-DAG: func.func private @inner
// CHECK-DAG: func.func private @outer
// CHECK: scf.for
// CHECK: func.call @outer
// CHECK: scf.if
func.func private @inner(%x: tensor<4xf32>) -> tensor<4xf32> {
  %0 = math.exp %x : tensor<4xf32>
  return %0 : tensor<4xf32>
}
func.func private @outer(%x: tensor<4xf32>) -> tensor<4xf32> {
  %0 = call @inner(%x) : (tensor<4xf32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}
func.func @control(%x: tensor<4xf32>, %c: i1, %n: index) -> tensor<4xf32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %y = scf.for %i = %c0 to %n step %c1 iter_args(%a = %x) -> (tensor<4xf32>) {
    %b = func.call @outer(%a) : (tensor<4xf32>) -> tensor<4xf32>
    %d = arith.addf %b, %x : tensor<4xf32>
    scf.yield %d : tensor<4xf32>
  }
  %z = scf.if %c -> (tensor<4xf32>) {
    scf.yield %y : tensor<4xf32>
  } else {
    %e = math.exp %x : tensor<4xf32>
    scf.yield %e : tensor<4xf32>
  }
  return %z : tensor<4xf32>
}

// -----

// StableHLO that nobody registered, with regions, complex numbers, sizes of zero
// and an operation that only has an effect.
// CHECK-LABEL: func.func private @stablehlo(
// CHECK: module @host0
// CHECK: "stablehlo.custom_call"{{.*}}"first"
// CHECK: "stablehlo.while"
// CHECK: "stablehlo.custom_call"{{.*}}"second"
func.func @stablehlo(%x: tensor<4xcomplex<f32>>, %n: tensor<i32>, %none: tensor<0x8xf32>) -> (tensor<4xcomplex<f32>>, tensor<0x8xf32>) {
  %0:2 = "stablehlo.while"(%n, %x) ({
  ^bb0(%i: tensor<i32>, %a: tensor<4xcomplex<f32>>):
    %p = "stablehlo.compare"(%i, %n) <{comparison_direction = "LT"}> : (tensor<i32>, tensor<i32>) -> tensor<i1>
    "stablehlo.return"(%p) : (tensor<i1>) -> ()
  }, {
  ^bb0(%i: tensor<i32>, %a: tensor<4xcomplex<f32>>):
    %b = "stablehlo.multiply"(%a, %x) : (tensor<4xcomplex<f32>>, tensor<4xcomplex<f32>>) -> tensor<4xcomplex<f32>>
    "stablehlo.return"(%i, %b) : (tensor<i32>, tensor<4xcomplex<f32>>) -> ()
  }) : (tensor<i32>, tensor<4xcomplex<f32>>) -> (tensor<i32>, tensor<4xcomplex<f32>>)
  "stablehlo.custom_call"(%n) <{call_target_name = "first"}> : (tensor<i32>) -> ()
  "stablehlo.custom_call"(%x) <{call_target_name = "second"}> : (tensor<4xcomplex<f32>>) -> ()
  %1 = "stablehlo.concatenate"(%none, %none) <{dimension = 0 : i64}> : (tensor<0x8xf32>, tensor<0x8xf32>) -> tensor<0x8xf32>
  return %0#1, %1 : tensor<4xcomplex<f32>>, tensor<0x8xf32>
}

// -----

// Attributes that only a body may have do not stay on the declaration.
// CHECK-LABEL: func.func private @writable(tensor<4xf32> {baechi.device = "host0"})
func.func @writable(%x: tensor<4xf32> {bufferization.writable = true}) -> tensor<4xf32> {
  %0 = math.exp %x : tensor<4xf32>
  return %0 : tensor<4xf32>
}

// -----

// A device's module takes another name where its own is taken.
// CHECK-LABEL: func.func private @host0(
// CHECK: module @host0_0 attributes {{.*}}baechi.device = "host0"
func.func @host0(%x: tensor<4xf32>) -> tensor<4xf32> {
  %0 = math.exp %x : tensor<4xf32>
  return %0 : tensor<4xf32>
}

// -----

// Nothing to place.
// CHECK-LABEL: func.func private @nothing()
// CHECK: module @host0
// CHECK: module @host1
func.func @nothing() {
  return
}

// -----

// Vectors, names used twice, a region without a terminator, results nobody uses.
// CHECK-LABEL: func.func private @odd(vector<4xf32>
func.func @odd(%x: vector<4xf32>) -> vector<4xf32> {
  %0 = arith.addf %x, %x {baechi.name = "same"} : vector<4xf32>
  %1 = arith.mulf %0, %x {baechi.name = "same"} : vector<4xf32>
  "other.graph"() ({
    %2 = "other.late"(%3) : (i32) -> i32
    %3 = "other.early"() : () -> i32
  }) : () -> ()
  %unused:2 = "other.two"(%1) : (vector<4xf32>) -> (vector<4xf32>, i64)
  return %1 : vector<4xf32>
}

// -----

// Only a func.func is a kernel: what else has the attribute keeps its body.
// CHECK-LABEL: func.func private @marked(
// CHECK: module @host0
// CHECK: llvm.func internal @twice(%{{.*}}: i64) -> i64 {{.*}}{
// CHECK: llvm.add
llvm.func @marked(%x: i64) -> i64 {
  %0 = llvm.call @twice(%x) : (i64) -> i64
  llvm.return %0 : i64
}
llvm.func internal @twice(%x: i64) -> i64 attributes {baechi.kernel, sym_visibility = "private"} {
  %0 = llvm.add %x, %x : i64
  llvm.return %0 : i64
}

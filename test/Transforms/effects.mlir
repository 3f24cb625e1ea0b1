// Operators with effects keep their order on one device; pure ones are spread.
// RUN: split-file %s %t
// DEFINE: %{place} = --allow-unregistered-dialect --baechi-place="metf machine=host:2@1MiB budget=0"
// RUN: baechi-opt %t/calls.mlir %{place} | FileCheck %s --check-prefix=CALLS
// RUN: baechi-opt %t/calls.mlir %{place} --baechi-verify-placed --baechi-partition --baechi-verify-partitioned | FileCheck %s --check-prefix=ORDER
// RUN: baechi-opt %t/pure.mlir %{place} | FileCheck %s --check-prefix=PURE
// RUN: not baechi-opt %t/pinned.mlir %{place} 2>&1 | FileCheck %s --check-prefix=PINNED

// What is only declared may do anything, a custom call says that it does.
// CALLS-LABEL: func.func @step
// CALLS-COUNT-6: baechi.device = "[[DEVICE:host.]]"
// CALLS-NOT: baechi.device
// ORDER: module @host
// ORDER: call @next{{.*}}"n0"
// ORDER: call @next{{.*}}"n1"
// ORDER: call @rand{{.*}}"r0"
// ORDER: call @rand{{.*}}"r1"
// ORDER: custom_call{{.*}}"c0"
// ORDER: custom_call{{.*}}"c1"

// Kernels, what says that it touches no memory, and other custom calls.
// PURE-LABEL: func.func @step
// PURE: @kernel{{.*}}baechi.device = "[[KERNEL:host.]]"
// PURE-NOT: @kernel{{.*}}baechi.device = "[[KERNEL]]"
// PURE: @abs{{.*}}baechi.device = "[[ABS:host.]]"
// PURE-NOT: @abs{{.*}}baechi.device = "[[ABS]]"
// PURE: custom_call{{.*}}baechi.device = "[[CUSTOM:host.]]"
// PURE-NOT: custom_call{{.*}}baechi.device = "[[CUSTOM]]"
// PURE: return

// PINNED: error: {{.*}}'first' pinned to 'host0' and {{.*}}'second' pinned to 'host1': a group is on one device

//--- calls.mlir
#c = #baechi.cost<time_ns = {host = 1000000}, scratch = 0>
func.func private @next() -> f32
llvm.func @rand() -> i32
func.func @step() -> (f32, f32, i32, i32, tensor<4xf32>, tensor<4xf32>) {
  %0 = call @next() {baechi.name = "n0", baechi.cost = #c} : () -> f32
  %1 = call @next() {baechi.name = "n1", baechi.cost = #c} : () -> f32
  %2 = llvm.call @rand() {baechi.name = "r0", baechi.cost = #c} : () -> i32
  %3 = llvm.call @rand() {baechi.name = "r1", baechi.cost = #c} : () -> i32
  %4 = "stablehlo.custom_call"() {call_target_name = "c", has_side_effect = true, baechi.name = "c0", baechi.cost = #c} : () -> tensor<4xf32>
  %5 = "stablehlo.custom_call"() <{call_target_name = "c", has_side_effect = true}> {baechi.name = "c1", baechi.cost = #c} : () -> tensor<4xf32>
  return %0, %1, %2, %3, %4, %5 : f32, f32, i32, i32, tensor<4xf32>, tensor<4xf32>
}
//--- pure.mlir
#c = #baechi.cost<time_ns = {host = 1000000}, scratch = 0>
func.func private @kernel() -> f32 attributes {baechi.kernel}
llvm.func @abs() -> i32 attributes {memory_effects = #llvm.memory_effects<other = none, argMem = none, inaccessibleMem = none, errnoMem = none, targetMem0 = none, targetMem1 = none>}
func.func @step() -> (f32, f32, i32, i32, tensor<4xf32>, tensor<4xf32>) {
  %0 = call @kernel() {baechi.cost = #c} : () -> f32
  %1 = call @kernel() {baechi.cost = #c} : () -> f32
  %2 = llvm.call @abs() {baechi.cost = #c} : () -> i32
  %3 = llvm.call @abs() {baechi.cost = #c} : () -> i32
  %4 = "stablehlo.custom_call"() {call_target_name = "c", has_side_effect = false, baechi.cost = #c} : () -> tensor<4xf32>
  %5 = "stablehlo.custom_call"() {call_target_name = "c", has_side_effect = false, baechi.cost = #c} : () -> tensor<4xf32>
  return %0, %1, %2, %3, %4, %5 : f32, f32, i32, i32, tensor<4xf32>, tensor<4xf32>
}
//--- pinned.mlir
#c = #baechi.cost<time_ns = {host = 1000000}, scratch = 0>
func.func private @next() -> f32
func.func @step() -> (f32, f32) {
  %0 = call @next() {baechi.name = "first", baechi.pin = "host0", baechi.cost = #c} : () -> f32
  %1 = call @next() {baechi.name = "second", baechi.pin = "host1", baechi.cost = #c} : () -> f32
  return %0, %1 : f32, f32
}

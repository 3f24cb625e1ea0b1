// A chain of four: a step alone is fastest on one device; where steps overlap,
// one comes every two operators with two devices.
// RUN: baechi-opt %s --baechi-place="metf machine=host:2@1MiB budget=2000e" | FileCheck %s --check-prefix=STEP
// RUN: baechi-opt %s --baechi-place="metf machine=host:2@1MiB budget=2000e objective=makespan" | FileCheck %s --check-prefix=STEP
// RUN: baechi-opt %s --baechi-place="metf machine=host:2@1MiB budget=2000e objective=period" | FileCheck %s --check-prefix=PERIOD
// RUN: baechi-opt %s --baechi-place-and-plan="metf machine=host:2@1MiB budget=2000e" | FileCheck %s --check-prefix=ALONE
// RUN: baechi-opt %s --baechi-place-and-plan="metf machine=host:2@1MiB budget=2000e objective=period" | FileCheck %s --check-prefix=STAGES

// STEP: lower_bound = 400000,
// STEP-NOT: baechi.sends
// PERIOD: lower_bound = 200000,
// PERIOD: baechi.sends
// PERIOD-NOT: baechi.sends

// ALONE-NOT: baechi.send
// STAGES: module @host0
// STAGES-DAG: baechi.send
// STAGES-DAG: module @host1

// RUN: not baechi-opt %s --baechi-place="metf machine=host:2 objective=soon" 2>&1 | FileCheck %s --check-prefix=UNKNOWN
// RUN: not baechi-opt %s --baechi-place-and-plan="metf machine=host:2 objective=soon" 2>&1 | FileCheck %s --check-prefix=UNKNOWN
// UNKNOWN: error: unknown objective 'soon'; known: makespan, period
// RUN: not baechi-opt %s --baechi-place="metf machine=cuda:2@1MiB objective=period" 2>&1 | FileCheck %s --check-prefix=GPU
// RUN: not baechi-opt %s --baechi-place-and-plan="metf machine=cuda:2@1MiB objective=period" 2>&1 | FileCheck %s --check-prefix=GPU
// GPU: error: objective=period plans steps that overlap, and steps with a device of kind 'cuda' ('cuda0') do not: leave it out, or the device
// RUN: not baechi-opt %s --baechi-place-and-plan="metf machine=host:1@1MiB+pool:1MiB objective=period" 2>&1 | FileCheck %s --check-prefix=POOL
// POOL: error: objective=period plans steps that overlap, and steps with a device of kind 'pool' ('pool0') do not: leave it out, or the device

#cost = #baechi.cost<time_ns = {host = 100000}, scratch = 0>
func.func @step(%x: tensor<64x64xf32>) -> tensor<64x64xf32> {
  %a = math.exp %x {baechi.cost = #cost} : tensor<64x64xf32>
  %b = math.tanh %a {baechi.cost = #cost} : tensor<64x64xf32>
  %c = math.cos %b {baechi.cost = #cost} : tensor<64x64xf32>
  %d = math.sin %c {baechi.cost = #cost} : tensor<64x64xf32>
  return %d : tensor<64x64xf32>
}

// A result in its operand's place needs no room of its own: the plan tells
// whether a step fits that placers alone would refuse.
// RUN: baechi-opt %s --baechi-place-and-plan="machine=host:1@512 budget=0 fit-memory=never" | FileCheck %s
// RUN: not baechi-opt %s --baechi-place="machine=host:1@512 budget=0" 2>&1 | FileCheck %s --check-prefix=ALONE
// RUN: not baechi-opt %s --baechi-place-and-plan="machine=host:1@448 budget=0 fit-memory=never" 2>&1 | FileCheck %s --check-prefix=LESS
// RUN: not baechi-opt %s --baechi-place-and-plan="machine=host:1@512 placer=expert expert=none.txt budget=0 fit-memory=never" 2>&1 | FileCheck %s --check-prefix=RULES --implicit-check-not="bytes are counted"
// RULES: error: {{.*}}none.txt: cannot read
// CHECK: baechi.arena<bytes = 512
// ALONE: error: no placement can fit the memories
// LESS: error: no placement can fit the memories
// LESS: note: bytes are counted as if no result took its operand's place; with {{.*}} more on each device, as much as one operator's results can take over, there is no placement either
#cost = #baechi.cost<time_ns = {host = 9000}, scratch = 0>
func.func private @exp(%x: tensor<64xf32>) -> (tensor<64xf32> {baechi.may_alias = array<i64: 0>}) attributes {baechi.kernel} {
  %0 = math.exp %x : tensor<64xf32>
  return %0 : tensor<64xf32>
}
func.func @step(%x: tensor<64xf32>) -> tensor<64xf32> {
  %0 = call @exp(%x) {baechi.cost = #cost} : (tensor<64xf32>) -> tensor<64xf32>
  %1 = call @exp(%0) {baechi.cost = #cost} : (tensor<64xf32>) -> tensor<64xf32>
  %2 = call @exp(%1) {baechi.cost = #cost} : (tensor<64xf32>) -> tensor<64xf32>
  return %2 : tensor<64xf32>
}

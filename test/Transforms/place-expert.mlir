// An expert's rules put operators by their names; the first that matches.
// RUN: split-file %s %t
// RUN: baechi-opt %t/step.mlir --baechi-place="expert machine=host:2 budget=0 expert=%t/rules.expert" | FileCheck %s
// RUN: baechi-opt %t/step.mlir --baechi-place-and-plan="expert machine=host:2 budget=0 expert=%t/rules.expert" | FileCheck %s --check-prefix=PLANNED
// CHECK: placer = "expert"
// CHECK: arith.addf {{.*}}baechi.device = "host1"
// CHECK: arith.mulf {{.*}}baechi.device = "host0"
// PLANNED: placer = "expert"

//--- rules.expert
# The file's own comment.
^enc/ = host1
.* = host0

//--- step.mlir
#cost = #baechi.cost<time_ns = {host = 1000000}, scratch = 0>
func.func @step(%x: tensor<64x64xf32>, %y: tensor<64x64xf32>) -> (tensor<64x64xf32>, tensor<64x64xf32>) {
  %a = arith.addf %x, %x {baechi.name = "enc/add", baechi.cost = #cost} : tensor<64x64xf32>
  %b = arith.mulf %y, %y {baechi.name = "dec/mul", baechi.cost = #cost} : tensor<64x64xf32>
  return %a, %b : tensor<64x64xf32>, tensor<64x64xf32>
}

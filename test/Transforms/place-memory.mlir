// A program that fits no placement: the bytes, the limit, the culprits.
// RUN: not baechi-opt %s --baechi-place="machine=host:2@40KiB" 2>&1 | FileCheck %s
// One device holds it when memory suffices.
// RUN: baechi-opt %s --baechi-place="machine=host:2@1MiB" -o /dev/null

// CHECK: place-memory.mlir:[[#@LINE+1]]:{{.*}}: error: no placement can fit the memories: operator 0 'large/weights' has 65536 resident bytes (64.00 KiB), the largest device it may use has 40960 (40.00 KiB)
func.func @step(%w: tensor<128x128xf32> {baechi.name = "large/weights"}, %x: tensor<128xf32> {baechi.name = "x"}) -> tensor<128x128xf32> {
  %0 = arith.addf %w, %w {baechi.cost = #baechi.cost<time_ns = {host = 10}, scratch = 0>} : tensor<128x128xf32>
  return %0 : tensor<128x128xf32>
}

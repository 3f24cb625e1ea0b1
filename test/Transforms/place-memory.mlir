// A program that fits no placement: the bytes, the limit, the culprits.
// RUN: not baechi-opt %s --allow-unregistered-dialect --baechi-place="machine=host:2@40KiB" 2>&1 | FileCheck %s
// Where one operator is the reason, the error is there.
// RUN: not baechi-opt %s --allow-unregistered-dialect --baechi-place="machine=host:1@150KiB" 2>&1 | FileCheck %s --check-prefix=HELD
// One device holds it when memory suffices.
// RUN: baechi-opt %s --allow-unregistered-dialect --baechi-place="machine=host:2@1MiB" -o /dev/null

// CHECK: place-memory.mlir:[[#@LINE+1]]:{{.*}}: error: no placement can fit the memories: operator 0 'large/weights' has 65536 resident bytes (64.00 KiB), the largest device it may use has 40960 (40.00 KiB)
func.func @step(%w: tensor<128x128xf32> {baechi.name = "large/weights"}, %x: tensor<128xf32> {baechi.name = "x"}) -> tensor<16xf32> {
  %0 = "x.a"(%w) {baechi.cost = #baechi.cost<time_ns = {host = 10}, scratch = 0>} : (tensor<128x128xf32>) -> tensor<128x128xf32>
  %1 = "x.b"(%0) {baechi.cost = #baechi.cost<time_ns = {host = 10}, scratch = 0>} : (tensor<128x128xf32>) -> tensor<128x128xf32>
  // HELD: place-memory.mlir:[[#@LINE+1]]:{{.*}}: error: no placement can fit the memories: while operator 4 'x.c' runs, 197184 bytes (192.56 KiB) must be held, whatever the order of the operators: what it reads, makes and works in, what is resident, and what was made before and is needed later; the device has 153600 (150.00 KiB)
  %2 = "x.c"(%1, %0) {baechi.cost = #baechi.cost<time_ns = {host = 10}, scratch = 0>} : (tensor<128x128xf32>, tensor<128x128xf32>) -> tensor<16xf32>
  return %2 : tensor<16xf32>
}

// What has no part in a refusal is gone.
// RUN: echo '#!/bin/sh' > %t.sh
// RUN: echo "! baechi-opt \$1 --baechi-place=machine=host:1 2>&1 | grep -q \"'math.exp' op has no 'baechi.cost'\"" >> %t.sh
// RUN: chmod +x %t.sh
// RUN: baechi-reduce %s --reduction-tree="traversal-mode=0 test=%t.sh" -o %t.reduced
// RUN: FileCheck %s < %t.reduced

// CHECK-NOT: @first
// CHECK: func.func @step
// CHECK: math.exp
// CHECK-NOT: @last
func.func private @first(tensor<4xf32>) attributes {baechi.kernel}
func.func private @second(%x: tensor<4xf32>) -> tensor<4xf32> attributes {baechi.kernel} {
  %0 = arith.addf %x, %x : tensor<4xf32>
  return %0 : tensor<4xf32>
}
func.func @step(%x: tensor<4xf32>) -> tensor<4xf32> {
  %0 = arith.addf %x, %x {baechi.cost = #baechi.cost<time_ns = {host = 1}, scratch = 0>} : tensor<4xf32>
  %1 = math.exp %0 : tensor<4xf32>
  return %1 : tensor<4xf32>
}
func.func private @last(tensor<4xf32>) attributes {baechi.kernel}

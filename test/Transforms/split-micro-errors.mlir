// RUN: baechi-opt %s --verify-diagnostics --baechi-split="pieces=8 reductions=true chained=true"
// RUN: not baechi-opt %s --baechi-split="pieces=2 reductions=true chained=true" 2>&1 | FileCheck %s

// CHECK: error: nothing is as heavy as a batch that could be cut in 2 micro-batches; compile it whole (splits=none), or name what is to be cut (split)
// expected-error@below {{nothing is as heavy as a batch that could be cut in 8 micro-batches; ask for fewer, or name what is to be cut (split)}}
func.func @small(%x: tensor<4x3xf32>) -> tensor<4x3xf32> {
  %y = math.exp %x : tensor<4x3xf32>
  return %y : tensor<4x3xf32>
}

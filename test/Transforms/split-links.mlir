// RUN: baechi-opt %s --split-input-file --baechi-split="pieces=2 reductions=true" --remarks-filter=baechi-split 2>&1 | FileCheck %s

// Where devices share memory rows are cut, as each piece reads all of the
// weight where it lies.
// CHECK: [Passed] split | {{.*}}Function=lent {{.*}}Pieces=128+128
#lent = #baechi.machine<devices = [<"a", kind = "host", memory = 1000000000>, <"b", kind = "host", memory = 1000000000>], link_default = <"" -> "", latency_ns = 100, bytes_per_us = 1000, lends>, link_model = parallel>
module attributes {baechi.machine = #lent} {
  func.func @lent(%x: tensor<256x256xf32>, %w: tensor<256x4096xf32>) -> tensor<256x4096xf32> {
    %zero = arith.constant 0.0 : f32
    %e = tensor.empty() : tensor<256x4096xf32>
    %z = linalg.fill ins(%zero : f32) outs(%e : tensor<256x4096xf32>) -> tensor<256x4096xf32>
    %p = linalg.matmul ins(%x, %w : tensor<256x256xf32>, tensor<256x4096xf32>) outs(%z : tensor<256x4096xf32>) -> tensor<256x4096xf32>
    return %p : tensor<256x4096xf32>
  }
}

// -----

// Over a link the small operand is sent and the large one is in pieces.
// CHECK: [Passed] split | {{.*}}Function=sent {{.*}}Pieces=2048+2048
#sent = #baechi.machine<devices = [<"a", kind = "host", memory = 1000000000>, <"b", kind = "host", memory = 1000000000>], link_default = <"" -> "", latency_ns = 100, bytes_per_us = 1000>, link_model = sequential>
module attributes {baechi.machine = #sent} {
  func.func @sent(%x: tensor<256x256xf32>, %w: tensor<256x4096xf32>) -> tensor<256x4096xf32> {
    %zero = arith.constant 0.0 : f32
    %e = tensor.empty() : tensor<256x4096xf32>
    %z = linalg.fill ins(%zero : f32) outs(%e : tensor<256x4096xf32>) -> tensor<256x4096xf32>
    %p = linalg.matmul ins(%x, %w : tensor<256x256xf32>, tensor<256x4096xf32>) outs(%z : tensor<256x4096xf32>) -> tensor<256x4096xf32>
    return %p : tensor<256x4096xf32>
  }
}

// -----

// Over a link that is slower still nothing is cut.
// CHECK-NOT: [Passed]
// CHECK: func.func @slow
#slow = #baechi.machine<devices = [<"a", kind = "host", memory = 1000000000>, <"b", kind = "host", memory = 1000000000>], link_default = <"" -> "", latency_ns = 100000000, bytes_per_us = 1>, link_model = sequential>
module attributes {baechi.machine = #slow} {
  func.func @slow(%x: tensor<256x256xf32>, %w: tensor<256x4096xf32>) -> tensor<256x4096xf32> {
    %zero = arith.constant 0.0 : f32
    %e = tensor.empty() : tensor<256x4096xf32>
    %z = linalg.fill ins(%zero : f32) outs(%e : tensor<256x4096xf32>) -> tensor<256x4096xf32>
    %p = linalg.matmul ins(%x, %w : tensor<256x256xf32>, tensor<256x4096xf32>) outs(%z : tensor<256x4096xf32>) -> tensor<256x4096xf32>
    return %p : tensor<256x4096xf32>
  }
}

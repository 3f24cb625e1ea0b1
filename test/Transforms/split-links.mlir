// RUN: baechi-opt %s --split-input-file --baechi-split="pieces=2 reductions=true" --remarks-filter=baechi-split 2>&1 | FileCheck %s
// RUN: baechi-opt %s --split-input-file --baechi-split="pieces=2 reductions=true sent-percent=0" --remarks-filter=baechi-split 2>&1 | FileCheck %s --check-prefix=FREE

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
// CHECK: [Passed] split | {{.*}}Function=sent {{.*}}Pieces=2048+2048, {{.*}}SentUs={{[1-9][0-9]*}}
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

// Sums over the batch that all pieces wait for: each layer saves less than its
// sum takes, and to put the tensor together costs more than a layer loses, but
// not more than all four lose. So the product is in pieces, and what follows it
// is whole.
// CHECK: [Passed] split | {{.*}}Function=statistics {{.*}}PartialResults=0, Pieces=2048+2048
// CHECK-COUNT-8: not-split {{.*}}Function=statistics {{.*}}send each other more than they save
// If nothing of what is sent had to be waited for, all would be.
// FREE: [Passed] split | {{.*}}Function=statistics {{.*}}PartialResults=4, Pieces=2048+2048
#rows = affine_map<(d0, d1) -> (d0, d1)>
#columns = affine_map<(d0, d1) -> (d1)>
#waits = #baechi.machine<devices = [<"a", kind = "host", memory = 1000000000>, <"b", kind = "host", memory = 1000000000>], link_default = <"" -> "", latency_ns = 200000, bytes_per_us = 10000>, link_model = sequential>
module attributes {baechi.machine = #waits} {
  func.func @statistics(%x: tensor<4096x1024xf32>, %w: tensor<1024x1xf32>) -> tensor<4096x1xf32> {
    %zero = arith.constant 0.0 : f32
    %e = tensor.empty() : tensor<4096x1xf32>
    %z = linalg.fill ins(%zero : f32) outs(%e : tensor<4096x1xf32>) -> tensor<4096x1xf32>
    %ec = tensor.empty() : tensor<1xf32>
    %c = linalg.fill ins(%zero : f32) outs(%ec : tensor<1xf32>) -> tensor<1xf32>
    %p = linalg.matmul ins(%x, %w : tensor<4096x1024xf32>, tensor<1024x1xf32>) outs(%z : tensor<4096x1xf32>) -> tensor<4096x1xf32>
    %s0 = linalg.generic {indexing_maps = [#rows, #columns], iterator_types = ["reduction", "parallel"]} ins(%p : tensor<4096x1xf32>) outs(%c : tensor<1xf32>) {
    ^bb0(%a: f32, %b: f32):
      %t = arith.addf %b, %a : f32
      linalg.yield %t : f32
    } -> tensor<1xf32>
    %n0 = linalg.generic {indexing_maps = [#rows, #columns, #rows], iterator_types = ["parallel", "parallel"]} ins(%p, %s0 : tensor<4096x1xf32>, tensor<1xf32>) outs(%e : tensor<4096x1xf32>) {
    ^bb0(%a: f32, %b: f32, %o: f32):
      %t = arith.subf %a, %b : f32
      linalg.yield %t : f32
    } -> tensor<4096x1xf32>
    %s1 = linalg.generic {indexing_maps = [#rows, #columns], iterator_types = ["reduction", "parallel"]} ins(%n0 : tensor<4096x1xf32>) outs(%c : tensor<1xf32>) {
    ^bb0(%a: f32, %b: f32):
      %t = arith.addf %b, %a : f32
      linalg.yield %t : f32
    } -> tensor<1xf32>
    %n1 = linalg.generic {indexing_maps = [#rows, #columns, #rows], iterator_types = ["parallel", "parallel"]} ins(%n0, %s1 : tensor<4096x1xf32>, tensor<1xf32>) outs(%e : tensor<4096x1xf32>) {
    ^bb0(%a: f32, %b: f32, %o: f32):
      %t = arith.subf %a, %b : f32
      linalg.yield %t : f32
    } -> tensor<4096x1xf32>
    %s2 = linalg.generic {indexing_maps = [#rows, #columns], iterator_types = ["reduction", "parallel"]} ins(%n1 : tensor<4096x1xf32>) outs(%c : tensor<1xf32>) {
    ^bb0(%a: f32, %b: f32):
      %t = arith.addf %b, %a : f32
      linalg.yield %t : f32
    } -> tensor<1xf32>
    %n2 = linalg.generic {indexing_maps = [#rows, #columns, #rows], iterator_types = ["parallel", "parallel"]} ins(%n1, %s2 : tensor<4096x1xf32>, tensor<1xf32>) outs(%e : tensor<4096x1xf32>) {
    ^bb0(%a: f32, %b: f32, %o: f32):
      %t = arith.subf %a, %b : f32
      linalg.yield %t : f32
    } -> tensor<4096x1xf32>
    %s3 = linalg.generic {indexing_maps = [#rows, #columns], iterator_types = ["reduction", "parallel"]} ins(%n2 : tensor<4096x1xf32>) outs(%c : tensor<1xf32>) {
    ^bb0(%a: f32, %b: f32):
      %t = arith.addf %b, %a : f32
      linalg.yield %t : f32
    } -> tensor<1xf32>
    %n3 = linalg.generic {indexing_maps = [#rows, #columns, #rows], iterator_types = ["parallel", "parallel"]} ins(%n2, %s3 : tensor<4096x1xf32>, tensor<1xf32>) outs(%e : tensor<4096x1xf32>) {
    ^bb0(%a: f32, %b: f32, %o: f32):
      %t = arith.subf %a, %b : f32
      linalg.yield %t : f32
    } -> tensor<4096x1xf32>
    return %n3 : tensor<4096x1xf32>
  }
}

// -----

// Over a link that is slower still nothing is cut.
// CHECK-NOT: [Passed] split | {{.*}}Function=slow
// CHECK: func.func @slow
// FREE: [Passed] split | {{.*}}Function=slow
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

// RUN: not baechi-opt %s --split-input-file --baechi-annotate-costs --baechi-export-nodes="file=%t.json parts=3" 2>&1 | FileCheck %s
// RUN: not baechi-opt %s --split-input-file --baechi-export-nodes="file=%t.json parts=2" 2>&1 | FileCheck %s --check-prefix=COSTS
// RUN: not baechi-opt %s --split-input-file --baechi-annotate-costs --baechi-export-nodes=parts=2 2>&1 | FileCheck %s --check-prefix=FILE
// RUN: not baechi-opt %s --split-input-file --baechi-annotate-costs --baechi-export-nodes="file=%t.json parts=2 pieces=1" 2>&1 | FileCheck %s --check-prefix=PIECES
// CHECK: export-nodes-errors.mlir:[[#@LINE+12]]:1: error: the step has no batch to cut in 3 parts: no dimension
// CHECK: error: the step's batch, dimension 0 of argument 0, is of 64, which does not divide into 3 equal parts: take parts=2, a batch of 63 or 66, or name the batch's arguments (split) if it is another
// COSTS: has no 'baechi.cost'; run --baechi-annotate-costs
// FILE: error: no file for the graph; name one (file=)
// RUN: not baechi-opt %s --split-input-file --baechi-annotate-costs --baechi-export-nodes="file=%t.json parts=0" 2>&1 | FileCheck %s --check-prefix=PARTS
// PARTS: error: parts=0: a batch has one part or more
// RUN: not baechi-opt %s --split-input-file --baechi-annotate-costs --baechi-export-nodes="file=%t.json kind=tpu" 2>&1 | FileCheck %s --check-prefix=KIND
// KIND: error: no roofline of kind 'tpu'; describe it with roofline=
// RUN: not baechi-opt %s --split-input-file --baechi-annotate-costs --baechi-export-nodes="file=%t.json parts=2 pieces=2,2" 2>&1 | FileCheck %s --check-prefix=TWICE
// TWICE: error: pieces=2 is there twice
// PIECES: error: pieces=1: ways have two and more

func.func @parameters(%w: tensor<300x300xf32> {baechi.updated_by = 0 : i64}) -> tensor<300x300xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<300x300xf32>
  %z = linalg.fill ins(%zero : f32) outs(%e : tensor<300x300xf32>) -> tensor<300x300xf32>
  %y = linalg.matmul ins(%w, %w : tensor<300x300xf32>, tensor<300x300xf32>) outs(%z : tensor<300x300xf32>) -> tensor<300x300xf32>
  return %y : tensor<300x300xf32>
}

// -----

func.func @rows(%x: tensor<64x300xf32>, %w: tensor<300x301xf32> {baechi.updated_by = 1 : i64}) -> (tensor<64x301xf32>, tensor<300x301xf32>) {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<64x301xf32>
  %z = linalg.fill ins(%zero : f32) outs(%e : tensor<64x301xf32>) -> tensor<64x301xf32>
  %y = linalg.matmul ins(%x, %w : tensor<64x300xf32>, tensor<300x301xf32>) outs(%z : tensor<64x301xf32>) -> tensor<64x301xf32>
  return %y, %w : tensor<64x301xf32>, tensor<300x301xf32>
}

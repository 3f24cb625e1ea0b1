//===- Passes.td - Passes on what a program computes twice -*- tablegen -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef BAECHI_TRANSFORMS_CHECKPOINTS_PASSES
#define BAECHI_TRANSFORMS_CHECKPOINTS_PASSES

include "mlir/Pass/PassBase.td"

def UndoCheckpoints : Pass<"baechi-undo-checkpoints", "::mlir::ModuleOp"> {
  let summary = "compute once what jax.checkpoint computes again";
  let description = [{
    Before kernels are formed. What `jax.checkpoint` makes a backward pass
    compute a second time has the scope `rematted_computation` in its name. Where
    the same operation on the same values stands before it, its results take the
    place of those computed again; initial tensors (`tensor.empty`, fills,
    constants) count as the same and stay apart, and so do tensors that only move:
    reshapes, and what loops that are written out stack and read again. What has effects stays, and so
    does what was computed nowhere before, as factors of derivatives. The step
    computes the same, bit for bit. Whether there is memory for it, whoever
    plans finds out, and computes again what is dearest to hold
    (`--baechi-fit-memory`).

    Operations that read each other's results are one region, as a checkpoint
    makes them, and those within it; they are numbered in the program's order,
    and those that `keep` lists stay.

    ```mlir
    func.func @step(%x: tensor<8xf32>) -> (tensor<8xf32>, tensor<8xf32>) {
      %0 = tensor.empty() : tensor<8xf32>
      %1 = linalg.exp ins(%x : tensor<8xf32>) outs(%0 : tensor<8xf32>) -> tensor<8xf32> loc("layer/exp")
      %2 = tensor.empty() : tensor<8xf32>
      %3 = linalg.exp ins(%x : tensor<8xf32>) outs(%2 : tensor<8xf32>) -> tensor<8xf32> loc("backward/checkpoint/rematted_computation/layer/exp")
      return %1, %3 : tensor<8xf32>, tensor<8xf32>
    }
    ```
    becomes by `--baechi-undo-checkpoints`
    ```mlir
    module {
      func.func @step(%arg0: tensor<8xf32>) -> (tensor<8xf32>, tensor<8xf32>) {
        %0 = tensor.empty() : tensor<8xf32>
        %1 = linalg.exp ins(%arg0 : tensor<8xf32>) outs(%0 : tensor<8xf32>) -> tensor<8xf32>
        return %1, %1 : tensor<8xf32>, tensor<8xf32>
      }
    }
    ```
  }];
  let options = [
    ListOption<"keep", "keep", "unsigned",
               "regions that are computed again, by their numbers">
  ];
}

#endif // BAECHI_TRANSFORMS_CHECKPOINTS_PASSES

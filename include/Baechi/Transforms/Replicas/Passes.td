//===- Passes.td - Passes on replicated steps -*- tablegen -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef BAECHI_TRANSFORMS_REPLICAS_PASSES
#define BAECHI_TRANSFORMS_REPLICAS_PASSES

include "mlir/Pass/PassBase.td"

def Replicate : Pass<"baechi-replicate", "::mlir::ModuleOp"> {
  let summary = "cut the batch into equal parts, one for each replica";
  let description = [{
    In place of `--baechi-split`, by the same rules: the batch is followed
    through the step, and every operation on it becomes one for each replica.
    Where a reduction meets the batch, replicas make partial results, which are
    joined in pairs, in the replicas' order; so statistics of a batch are those
    of the whole batch.

    What is cut first is what persons ask for (`baechi.split`); then the class of
    dimensions that the most work is along, of those that run through an
    argument, and through none which the step updates; and others of the same
    extent, where they save time. Parts are equal: a batch that
    does not divide is refused.

    The step then says how many replicas it has (`baechi.replicas`), and which
    arguments have a part for each (`baechi.batched`). `--baechi-form-kernels`
    forms no kernel of two replicas' operations, and says for which one a call
    computes (`baechi.replica`).

    ```mlir
    func.func @step(%w: tensor<8xf32> {baechi.updated_by = 0 : i64}, %x: tensor<4x8xf32> {baechi.split = #baechi.split<dim = 0, sizes = [2, 2]>}) -> (tensor<8xf32>, tensor<4x8xf32>) {
      %0 = math.exp %x : tensor<4x8xf32>
      return %w, %0 : tensor<8xf32>, tensor<4x8xf32>
    }
    ```
    becomes by `--baechi-replicate=replicas=2`
    ```mlir
    module {
      func.func @step(%arg0: tensor<8xf32> {baechi.updated_by = 0 : i64}, %arg1: tensor<4x8xf32> {baechi.batched}) -> (tensor<8xf32>, tensor<4x8xf32>) attributes {baechi.replicas = 2 : i64} {
        %extracted_slice = tensor.extract_slice %arg1[0, 0] [2, 8] [1, 1] : tensor<4x8xf32> to tensor<2x8xf32>
        %extracted_slice_0 = tensor.extract_slice %arg1[2, 0] [2, 8] [1, 1] : tensor<4x8xf32> to tensor<2x8xf32>
        %0 = math.exp %extracted_slice : tensor<2x8xf32>
        %1 = math.exp %extracted_slice_0 : tensor<2x8xf32>
        %2 = tensor.empty() : tensor<4x8xf32>
        %inserted_slice = tensor.insert_slice %0 into %2[0, 0] [2, 8] [1, 1] : tensor<2x8xf32> into tensor<4x8xf32>
        %inserted_slice_1 = tensor.insert_slice %1 into %inserted_slice[2, 0] [2, 8] [1, 1] : tensor<2x8xf32> into tensor<4x8xf32>
        return %arg0, %inserted_slice_1 : tensor<8xf32>, tensor<4x8xf32>
      }
    }
    ```
  }];
  let options = [
    Option<"replicas", "replicas", "unsigned", "0",
           "parts of the batch, 2 to 64">
  ];
  let dependentDialects = [
    "::baechi::BaechiDialect", "::mlir::arith::ArithDialect",
    "::mlir::linalg::LinalgDialect", "::mlir::tensor::TensorDialect"];
}

def PinReplicas : Pass<"baechi-pin-replicas", "::mlir::ModuleOp"> {
  let summary = "give replicas their devices, and parameters their owners";
  let description = [{
    Before placement, on the kernels of a step that `--baechi-replicate` has
    cut. Calls of replica `i` of `n` are pinned to device `i * devices / n`. Each
    argument that the step updates has one owner: it is pinned there with what
    computes its next value and what joins the replicas' gradients for it.
    Arguments that are updated from each other, as a weight and its moments
    are, have one owner; the largest go first, each to the device that owns the
    fewest bytes by then. So the optimizer's state is divided over the devices,
    as ZeRO does in its first stage (Rajbhandari et al., "ZeRO: Memory
    Optimizations Toward Training Trillion Parameter Models", SC 2020).

    What is pinned already stays there. More devices than replicas are an error.

    ```mlir
    #machine = #baechi.machine<devices = [<"a", kind = "host", memory = 1000>, <"b", kind = "host", memory = 1000>], link_model = parallel>
    module attributes {baechi.machine = #machine} {
      func.func private @exp(tensor<2xf32>) -> tensor<2xf32> attributes {baechi.kernel}
      func.func @step(%x: tensor<4xf32> {baechi.batched}) -> (tensor<2xf32>, tensor<2xf32>) attributes {baechi.replicas = 2 : i64} {
        %a = tensor.extract_slice %x[0] [2] [1] {baechi.view} : tensor<4xf32> to tensor<2xf32>
        %b = tensor.extract_slice %x[2] [2] [1] {baechi.view} : tensor<4xf32> to tensor<2xf32>
        %0 = call @exp(%a) {baechi.replica = 0 : i64} : (tensor<2xf32>) -> tensor<2xf32>
        %1 = call @exp(%b) {baechi.replica = 1 : i64} : (tensor<2xf32>) -> tensor<2xf32>
        return %0, %1 : tensor<2xf32>, tensor<2xf32>
      }
    }
    ```
    becomes by `--baechi-pin-replicas`
    ```mlir
    ...
      func.func @step(%arg0: tensor<4xf32> {baechi.batched}) -> (tensor<2xf32>, tensor<2xf32>) attributes {baechi.replicas = 2 : i64} {
        %extracted_slice = tensor.extract_slice %arg0[0] [2] [1] {baechi.view} : tensor<4xf32> to tensor<2xf32>
        %extracted_slice_0 = tensor.extract_slice %arg0[2] [2] [1] {baechi.view} : tensor<4xf32> to tensor<2xf32>
        %0 = call @exp(%extracted_slice) {baechi.pin = "a", baechi.replica = 0 : i64} : (tensor<2xf32>) -> tensor<2xf32>
        %1 = call @exp(%extracted_slice_0) {baechi.pin = "b", baechi.replica = 1 : i64} : (tensor<2xf32>) -> tensor<2xf32>
        return %0, %1 : tensor<2xf32>, tensor<2xf32>
      }
    }
    ```
  }];
  let options = [
    Option<"machine", "machine", "std::string", "",
           "machine file, or host:N[@SIZE]; default: the module's "
           "baechi.machine">
  ];
  let dependentDialects = ["::baechi::BaechiDialect"];
}

#endif // BAECHI_TRANSFORMS_REPLICAS_PASSES

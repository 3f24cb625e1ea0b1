//===- Passes.td - Passes on the order of sums -*- tablegen -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef BAECHI_TRANSFORMS_EXACT_PASSES
#define BAECHI_TRANSFORMS_EXACT_PASSES

include "mlir/Pass/PassBase.td"

def FoldSums : Pass<"baechi-fold-sums", "::mlir::ModuleOp"> {
  let summary = "add the terms of products that are added up in one sum";
  let description = [{
    Before loops are written out and `--baechi-fix-sums`, where sums have one
    order (`splits=exact`). A matrix product, or a convolution, plus another is
    one sum: its terms are added to what the other comes to, as in the gradient
    of a weight that each time step uses. So it is where a product is added
    to what comes from the turn before of a loop, such as what earlier turns
    have added up, whether turns are written out afterwards or not. Sums of more
    than 4,096 terms in all, of all turns, stay apart: they would be rounded too
    often, and adding tensors up takes little beside such products.

    Done here, on the whole step as it is written, since a sum that starts from
    another's result rounds otherwise: forming kernels decides it by who reads a
    tensor, which is not the same in pieces. Transpositions of products go, too:
    they write there. So do the products with zeros of sums over a dilated
    tensor, as the gradients of filters with strides are: long sums run in
    blocks, and zeros would move these. Operations of which `baechi` attributes
    say something, and those of `keep`, stay as they are.

    ```mlir
    #lhs = affine_map<(i, j, k) -> (i, k)>
    #rhs = affine_map<(i, j, k) -> (k, j)>
    #sum = affine_map<(i, j, k) -> (i, j)>
    #all = affine_map<(i, j) -> (i, j)>
    func.func @step(%a: tensor<4x8xf32>, %b: tensor<8x4xf32>, %c: tensor<4x8xf32>, %d: tensor<8x4xf32>) -> tensor<4x4xf32> {
      %zero = arith.constant 0.0 : f32
      %empty = tensor.empty() : tensor<4x4xf32>
      %start = linalg.fill ins(%zero : f32) outs(%empty : tensor<4x4xf32>) -> tensor<4x4xf32>
      %0 = linalg.generic {indexing_maps = [#lhs, #rhs, #sum], iterator_types = ["parallel", "parallel", "reduction"]}
          ins(%a, %b : tensor<4x8xf32>, tensor<8x4xf32>) outs(%start : tensor<4x4xf32>) {
      ^bb0(%x: f32, %y: f32, %sum: f32):
        %4 = arith.mulf %x, %y : f32
        %5 = arith.addf %sum, %4 : f32
        linalg.yield %5 : f32
      } -> tensor<4x4xf32>
      %1 = linalg.generic {indexing_maps = [#lhs, #rhs, #sum], iterator_types = ["parallel", "parallel", "reduction"]}
          ins(%c, %d : tensor<4x8xf32>, tensor<8x4xf32>) outs(%start : tensor<4x4xf32>) {
      ^bb0(%x: f32, %y: f32, %sum: f32):
        %4 = arith.mulf %x, %y : f32
        %5 = arith.addf %sum, %4 : f32
        linalg.yield %5 : f32
      } -> tensor<4x4xf32>
      %2 = linalg.generic {indexing_maps = [#all, #all, #all], iterator_types = ["parallel", "parallel"]}
          ins(%0, %1 : tensor<4x4xf32>, tensor<4x4xf32>) outs(%empty : tensor<4x4xf32>) {
      ^bb0(%x: f32, %y: f32, %out: f32):
        %4 = arith.addf %x, %y : f32
        linalg.yield %4 : f32
      } -> tensor<4x4xf32>
      return %2 : tensor<4x4xf32>
    }
    ```
    becomes by `--baechi-fold-sums`
    ```mlir
    #map = affine_map<(d0, d1, d2) -> (d0, d2)>
    #map1 = affine_map<(d0, d1, d2) -> (d2, d1)>
    #map2 = affine_map<(d0, d1, d2) -> (d0, d1)>
    module {
      func.func @step(%arg0: tensor<4x8xf32>, %arg1: tensor<8x4xf32>, %arg2: tensor<4x8xf32>, %arg3: tensor<8x4xf32>) -> tensor<4x4xf32> {
        %cst = arith.constant 0.000000e+00 : f32
        %0 = tensor.empty() : tensor<4x4xf32>
        %1 = linalg.fill ins(%cst : f32) outs(%0 : tensor<4x4xf32>) -> tensor<4x4xf32>
        %2 = linalg.generic {indexing_maps = [#map, #map1, #map2], iterator_types = ["parallel", "parallel", "reduction"]} ins(%arg2, %arg3 : tensor<4x8xf32>, tensor<8x4xf32>) outs(%1 : tensor<4x4xf32>) {
        ^bb0(%in: f32, %in_0: f32, %out: f32):
          %4 = arith.mulf %in, %in_0 : f32
          %5 = arith.addf %out, %4 : f32
          linalg.yield %5 : f32
        } -> tensor<4x4xf32>
        %3 = linalg.generic {indexing_maps = [#map, #map1, #map2], iterator_types = ["parallel", "parallel", "reduction"]} ins(%arg0, %arg1 : tensor<4x8xf32>, tensor<8x4xf32>) outs(%2 : tensor<4x4xf32>) {
        ^bb0(%in: f32, %in_0: f32, %out: f32):
          %4 = arith.mulf %in, %in_0 : f32
          %5 = arith.addf %out, %4 : f32
          linalg.yield %5 : f32
        } -> tensor<4x4xf32>
        return %3 : tensor<4x4xf32>
      }
    }
    ```
  }];
  let options = [
    ListOption<"keep", "keep", "std::string",
               "patterns of names of operations that stay as they are">
  ];
  let dependentDialects = [
    "::mlir::linalg::LinalgDialect", "::mlir::tensor::TensorDialect"];
}

def FixSums : Pass<"baechi-fix-sums", "::mlir::ModuleOp"> {
  let summary = "give each sum one order, whatever computes it";
  let description = [{
    Before `--baechi-split`. What rounds a result is decided here, on the whole
    step, and no longer by how operations are cut and fused: an element has the
    same bits in a whole and in any piece of it, on any number of host devices
    (`splits=exact`).

    - All else is computed as it is written: no products are contracted and no
      sums reordered. Fast-math flags of the program go.
    - A matrix product, or a convolution, in single precision adds by fused
      multiply-adds in the order of its reduction loops: a register tile, which
      does so for all its elements at once, and a plain loop are alike. Flags
      `contract` on the sum and on the product say so.
    - A sum over 8 and more elements that lie together is computed in 16
      partial sums, which vectors hold, and those are added in pairs. The flag
      `reassoc` on the sum says so.
    - All other sums are in the order of their loops.

    Named structured operations that reduce become `linalg.generic`. The step
    then asks for the implementation `exact`, and so do the kernels that are
    formed of it; it is one of those that a kernel can have, and libraries, which
    choose an order by the size of a product, are not asked.

    ```mlir
    func.func @step(%x: tensor<4x64xf32>, %zero: tensor<4xf32>) -> tensor<4xf32> {
      %0 = linalg.generic {
          indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i)>],
          iterator_types = ["parallel", "reduction"]}
          ins(%x : tensor<4x64xf32>) outs(%zero : tensor<4xf32>) {
      ^bb0(%term: f32, %sum: f32):
        %1 = arith.addf %sum, %term : f32
        linalg.yield %1 : f32
      } -> tensor<4xf32>
      return %0 : tensor<4xf32>
    }
    ```
    becomes by `--baechi-fix-sums`
    ```mlir
    #map = affine_map<(d0, d1) -> (d0, d1)>
    #map1 = affine_map<(d0, d1) -> (d0)>
    module {
      func.func @step(%arg0: tensor<4x64xf32>, %arg1: tensor<4xf32>) -> tensor<4xf32> attributes {baechi.implementation = "exact"} {
        %0 = linalg.generic {indexing_maps = [#map, #map1], iterator_types = ["parallel", "reduction"]} ins(%arg0 : tensor<4x64xf32>) outs(%arg1 : tensor<4xf32>) {
        ^bb0(%in: f32, %out: f32):
          %1 = arith.addf %out, %in fastmath<reassoc> : f32
          linalg.yield %1 : f32
        } -> tensor<4xf32>
        return %0 : tensor<4xf32>
      }
    }
    ```
  }];
  let dependentDialects = [
    "::baechi::BaechiDialect", "::mlir::arith::ArithDialect",
    "::mlir::linalg::LinalgDialect", "::mlir::tensor::TensorDialect"];
}

#endif // BAECHI_TRANSFORMS_EXACT_PASSES

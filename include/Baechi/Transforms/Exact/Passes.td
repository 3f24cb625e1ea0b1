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

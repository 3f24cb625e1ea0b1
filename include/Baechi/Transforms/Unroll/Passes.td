//===- Passes.td - Passes that write loops out -------------*- tablegen -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef BAECHI_TRANSFORMS_UNROLL_PASSES
#define BAECHI_TRANSFORMS_UNROLL_PASSES

include "mlir/Pass/PassBase.td"

def UnrollLoops : Pass<"baechi-unroll-loops", "::mlir::ModuleOp"> {
  let summary = "write loops of the step out, turn by turn";
  let description = [{
    Before kernels are formed. A loop is one operator on one device, and nothing
    in it is placed, cut or computed again. Written out, its turns are operators
    like others. This is done for loops of the step that count from one constant
    to another (`scf.for`, and `scf.while` as `lax.scan` and `lax.fori_loop`
    make it), and for loops within them, as long as the step then has at most
    `limit` operators. The number of a turn is a constant in it: slices at
    places that are computed of it become static, what reads of a stack what a
    turn has put there reads that itself, and a stack of which turns write every
    element begins as an empty tensor.

    A loop stays whole, with a remark (`not-unrolled`) why, whose turns are not
    known, that has effects, that writes rows at places which it reads, as the
    gradient of a look-up of several rows a turn does, or of which more turns
    than `most-writes` write into one tensor. So does a loop within another one
    whose turns are known only where those of the outer one are written out.

    ```mlir
    func.func @step(%w: tensor<2x8xf32>, %x: tensor<8xf32>) -> tensor<8xf32> {
      %zero = arith.constant 0 : index
      %one = arith.constant 1 : index
      %two = arith.constant 2 : index
      %0 = scf.for %layer = %zero to %two step %one iter_args(%h = %x) -> tensor<8xf32> {
        %row = tensor.extract_slice %w[%layer, 0] [1, 8] [1, 1] : tensor<2x8xf32> to tensor<8xf32>
        %1 = arith.mulf %h, %row : tensor<8xf32>
        scf.yield %1 : tensor<8xf32>
      }
      return %0 : tensor<8xf32>
    }
    ```
    becomes by `--baechi-unroll-loops`
    ```mlir
    module {
      func.func @step(%arg0: tensor<2x8xf32>, %arg1: tensor<8xf32>) -> tensor<8xf32> {
        %extracted_slice = tensor.extract_slice %arg0[0, 0] [1, 8] [1, 1] : tensor<2x8xf32> to tensor<8xf32>
        %0 = arith.mulf %arg1, %extracted_slice : tensor<8xf32>
        %extracted_slice_0 = tensor.extract_slice %arg0[1, 0] [1, 8] [1, 1] : tensor<2x8xf32> to tensor<8xf32>
        %1 = arith.mulf %0, %extracted_slice_0 : tensor<8xf32>
        return %1 : tensor<8xf32>
      }
    }
    ```
  }];
  let options = [
    Option<"limit", "limit", "int64_t", "4096",
           "operators that the step has at most then">,
    Option<"leastShare", "least-share", "int64_t", "0",
           "of the step's time by the default roofline, the per cent that a "
           "loop takes which is written out">,
    Option<"leastNs", "least-ns", "int64_t", "0",
           "what its operators take on average by the default roofline, in ns">,
    Option<"mostWrites", "most-writes", "int64_t", "128",
           "turns of a loop that write into a tensor, at most; kernels of more "
           "of them take long to be formed">,
    ListOption<"keep", "keep", "std::string",
               "names of loops that stay whole">
  ];
  let statistics = [
    Statistic<"unrolledLoops", "unrolled", "loops that were written out">
  ];
  let dependentDialects = [
    "::mlir::arith::ArithDialect", "::mlir::tensor::TensorDialect"];
}

#endif // BAECHI_TRANSFORMS_UNROLL_PASSES

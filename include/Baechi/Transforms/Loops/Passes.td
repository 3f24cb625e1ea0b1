//===- Passes.td - Passes on serial loops -*- tablegen -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef BAECHI_TRANSFORMS_LOOPS_PASSES
#define BAECHI_TRANSFORMS_LOOPS_PASSES

include "mlir/Pass/PassBase.td"

def RaiseLoops : Pass<"baechi-raise-loops"> {
  let summary = "make loops of scf and affine over memory loops over keys";
  let description = [{
    `scf.for` and `affine.for`, and nests of them in which each loop holds
    nothing else that has effects, become `baechi.foreach`: counters are keys of
    ranges. A step other than 1 becomes a factor, and bounds that are sums of
    the counters around them a set (`where`). Scalars that a loop carries are
    kept in memory. Where the innermost loop reads a memref that nothing in it
    writes at its counter, and what it reads is a position, it is a loop over
    that memref's elements: these are keys, in a range that the arrays' extents
    give, and what else lies at the counter are values.

    Loops are `ordered`, unless `unordered` says that any order is right.
    Arguments of functions are taken not to overlap each other and what is
    allocated, as in MLIR's own affine passes; other memory that may be the same
    is not raised if it is written. What is not raised stays as it is, and a
    remark says why.

    ```mlir
    func.func @add(%rows: memref<20xindex>, %x: memref<20xf32>, %y: memref<6xf32>) {
      %c0 = arith.constant 0 : index
      %c1 = arith.constant 1 : index
      %c20 = arith.constant 20 : index
      scf.for %n = %c0 to %c20 step %c1 {
        %i = memref.load %rows[%n] : memref<20xindex>
        %0 = memref.load %x[%n] : memref<20xf32>
        %1 = memref.load %y[%i] : memref<6xf32>
        %2 = arith.addf %1, %0 : f32
        memref.store %2, %y[%i] : memref<6xf32>
      }
      return
    }
    ```
    becomes by `--baechi-raise-loops`
    ```mlir
    ...
    baechi.foreach ordered (%i = %arg0 : memref<20xindex> in 0 to 6) values(%arg3 = %arg1 : memref<20xf32>) arrays(%arg4 = %arg2 : memref<6xf32>) {
      %0 = memref.load %arg4[%i] : memref<6xf32>
      %1 = arith.addf %0, %arg3 : f32
      memref.store %1, %arg4[%i] : memref<6xf32>
      baechi.yield
    }
    ```
  }];
  let options = [
    Option<"unordered", "unordered", "bool", "false",
           "any order of the entries is right">,
    Option<"reassociate", "reassociate", "bool", "false",
           "sums of floating-point numbers over entries may be made in any order">,
  ];
  let dependentDialects = ["::baechi::BaechiDialect",
                           "::mlir::affine::AffineDialect",
                           "::mlir::arith::ArithDialect",
                           "::mlir::memref::MemRefDialect"];
}

def AnalyseLoops : Pass<"baechi-analyse-loops"> {
  let summary = "say what of each loop may run at once";
  let description = [{
    Every `baechi.foreach` gets its `verdict` (`#baechi.loop_verdict`), and a
    remark says it, with notes at the two accesses that forbid more. Positions
    are sums of keys, of values from outside, of counters of loops in the body,
    and of numbers; dependences between such are exact, within the keys' ranges
    and with what `where` says of them. What other positions may be is any.
    Updates `x = x op f` are recognised, where `op` is an addition, a
    subtraction, a product, a minimum, a maximum or of bits, directly or through
    a loop that carries the sum; blocks may make sums of their own where the
    order changes no bit (integers, minima, maxima), or may
    (`reassociate`, or `fastmath<reassoc>` on the operations).

    An access that lies outside its array in every run of the loop is an error.

    `--baechi-analyse-loops` says of
    ```mlir
    func.func @scan(%x: memref<9xf32>) {
      // expected-remark @+1 {{serial, no more: arg0[i - 1] is read, arg0[i] is written; if any order of the entries is right, say so (unordered)}}
      baechi.foreach ordered (%i in 1 to 9) arrays(%a = %x : memref<9xf32>) {
        %c1 = arith.constant 1 : index
        %before = arith.subi %i, %c1 : index
        // expected-note @+1 {{arg0[i - 1] is read here}}
        %0 = memref.load %a[%before] : memref<9xf32>
        // expected-note @+1 {{arg0[i] is written here}}
        memref.store %0, %a[%i] : memref<9xf32>
        baechi.yield
      }
      return
    }
    ```
  }];
}

def LowerLoops : Pass<"baechi-lower-loops"> {
  let summary = "make loops over keys serial loops of scf";
  let description = [{
    Entries follow each other in their order, whatever the verdict: what a loop
    computes, on one device. Operations of affine in the body are an error:
    `--lower-affine` goes before.

    ```mlir
    func.func @add(%rows: memref<20xi32>, %x: memref<20xf32>, %y: memref<6xf32>) {
      baechi.foreach ordered (%i = %rows : memref<20xi32> in 0 to 6) values(%r = %x : memref<20xf32>) arrays(%a = %y : memref<6xf32>) {
        memref.store %r, %a[%i] : memref<6xf32>
        baechi.yield
      }
      return
    }
    ```
    becomes by `--baechi-lower-loops`
    ```mlir
    ...
    scf.for %arg3 = %c0 to %dim step %c1 {
      %0 = memref.load %arg0[%arg3] : memref<20xi32>
      %1 = arith.index_cast %0 : i32 to index
      %2 = memref.load %arg1[%arg3] : memref<20xf32>
      memref.store %2, %arg2[%1] : memref<6xf32>
    }
    ```
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect",
                           "::mlir::memref::MemRefDialect",
                           "::mlir::scf::SCFDialect"];
}

def PartitionLoops : Pass<"baechi-partition-loops", "::mlir::ModuleOp"> {
  let summary = "make functions with loops over keys steps of blocks over tensors";
  let description = [{
    A function of memrefs with `baechi.foreach` becomes a step of tensors, which
    `--baechi-compile` places on devices, or all that it is made of: memrefs that
    are arguments become tensors, those of them that are written results, too,
    with `baechi.updated_by`, and numbers tensors without dimensions.

    A loop that may run in parallel (`--baechi-analyse-loops`) is cut into blocks
    by the keys, or sums of keys, of its scheme, each into `workers` parts of
    about as many entries. A block is a loop of `scf` which becomes a kernel; it
    works on pieces of the arrays, and between blocks what neighbours have
    changed of a piece's halo is a tensor of its own. How many workers there are
    says what the blocks are and their order; devices change no bit. An ordered
    loop is as a serial run in the order of its keys, an unordered one as a
    serial run in the order of its blocks, which a remark names, with where keys
    are cut.

    A loop that cannot run in blocks is an error, or with `fallback=serial` a
    serial loop on one device, with a remark why. Ranges of keys are numbers.
    Entries of key arrays are sorted by their blocks at the beginning of each
    step; parts are then of equal ranges.

    ```mlir
    func.func @scale(%x: memref<8xf32>, %y: memref<8xf32>) {
      baechi.foreach unordered (%i in 0 to 8) arrays(%a = %x : memref<8xf32>, %b = %y : memref<8xf32>) {
        %0 = memref.load %a[%i] : memref<8xf32>
        %1 = arith.addf %0, %0 : f32
        memref.store %1, %b[%i] : memref<8xf32>
        baechi.yield
      }
      return
    }
    ```
    becomes by `--baechi-partition-loops=workers=2`
    ```mlir
    ...
    func.func @scale(%arg0: tensor<8xf32>, %arg1: tensor<8xf32> {baechi.updated_by = 0 : i64}) -> tensor<8xf32> attributes {baechi.implementation = "exact"} {
      %extracted_slice = tensor.extract_slice %arg0[0] [4] [1] : tensor<8xf32> to tensor<4xf32>
    ...
      %0 = scf.for %arg2 = %c0_3 to %c4_4 step %c1 iter_args(%arg3 = %extracted_slice_1) -> (tensor<4xf32>) {
        %extracted = tensor.extract %extracted_slice[%arg2] : tensor<4xf32>
    ...
      return %inserted_slice_11 : tensor<8xf32>
    ...
    ```
  }];
  let options = [
    Option<"workers", "workers", "unsigned", "4",
           "blocks that may run at once; they alone say what the blocks are">,
    Option<"fallback", "fallback", "std::string", "\"refuse\"",
           "what becomes of a loop that cannot run in blocks: refuse (an "
           "error), or serial">,
    Option<"serialWord", "serial-word", "std::string", "\"fallback=serial\"",
           "what errors say that asks for a serial loop">,
    Option<"checkPositions", "check-positions", "bool", "false",
           "a result says which positions its arrays did not have">,
  ];
  let dependentDialects = ["::mlir::affine::AffineDialect",
                           "::mlir::arith::ArithDialect",
                           "::mlir::func::FuncDialect",
                           "::mlir::linalg::LinalgDialect",
                           "::mlir::memref::MemRefDialect",
                           "::mlir::scf::SCFDialect",
                           "::mlir::tensor::TensorDialect"];
}

#endif // BAECHI_TRANSFORMS_LOOPS_PASSES

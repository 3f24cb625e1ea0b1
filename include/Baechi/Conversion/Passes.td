//===- Passes.td - Passes that lower programs to code -*- tablegen -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef BAECHI_CONVERSION_PASSES
#define BAECHI_CONVERSION_PASSES

include "mlir/Pass/PassBase.td"

def KernelScratch : Pass<"baechi-kernel-scratch", "::mlir::ModuleOp"> {
  let summary = "find the scratch bytes of every kernel's host code";
  let description = [{
    Lowers a copy of each kernel far enough to know the buffers of its own, and
    writes `baechi.kernel_scratch`: the bytes that its host code, in the
    implementation that `baechi.implementation` selects, needs while it runs.
    Buffers of up to 16 KiB lie on the stack and do not count. Memory planning
    reads the attribute.

    ```mlir
    func.func private @softmax_transpose(%x: tensor<1024x512xf32>) -> tensor<512x1024xf32>
        attributes {baechi.kernel, baechi.kernel_scratch = 2097152 : i64}
    ```
  }];
  let dependentDialects = ["::baechi::BaechiDialect"];
}

def LowerKernels : Pass<"baechi-lower-kernels", "::mlir::ModuleOp"> {
  let summary = "lower every kernel to host code";
  let description = [{
    Each kernel becomes an `llvm.func` that takes a pointer an argument, a
    pointer a result and a pointer to its scratch; it allocates nothing.
    `baechi.implementation` selects "openblas" (contractions in single
    precision, as calls of cblas_sgemm; the default where it exists) or
    "generated".

    ```mlir
    func.func private @matmul_12x9x7(%a: tensor<12x7xf32>, %b: tensor<7x9xf32>) -> tensor<12x9xf32> attributes {baechi.kernel} { ... }
    ```
    becomes
    ```mlir
    llvm.func @cblas_sgemm(i32, i32, i32, i32, i32, i32, f32, !llvm.ptr, i32, !llvm.ptr, i32, f32, !llvm.ptr, i32)
    llvm.func @matmul_12x9x7(%a: !llvm.ptr, %b: !llvm.ptr, %c: !llvm.ptr, %scratch: !llvm.ptr) attributes {baechi.kernel, baechi.kernel_scratch = 0 : i64} {
      ...
      llvm.call @cblas_sgemm(%rowMajor, %noTrans, %noTrans, %m, %n, %k, %alpha, %a, %lda, %b, %ldb, %beta, %c, %ldc)
    ```
    A kernel that is still called on tensors is an error: `baechi-lower` lowers
    the callers.
  }];
  let dependentDialects = ["::baechi::BaechiDialect"];
}

def Lower : Pass<"baechi-lower", "::mlir::ModuleOp"> {
  let summary = "lower a planned program to a device's code";
  let description = [{
    Each device's module becomes a function `int32_t (baechi_context *, char *)`
    that calls kernels and the runtime's C interface
    (Baechi/Runtime/Abi.h); the module gets the program's manifest
    (docs/program-format.md) as the string `PREFIX_program`.
  }];
  let options = [
    Option<"target", "target", "std::string", "\"host\"", "host">,
    Option<"prefix", "prefix", "std::string", "\"baechi\"",
           "what the module's symbols begin with">
  ];
  let dependentDialects = ["::baechi::BaechiDialect", "::mlir::LLVM::LLVMDialect"];
}

def ExportIree : Pass<"baechi-export-iree", "::mlir::ModuleOp"> {
  let summary = "turn a placed program into IREE's input";
  let description = [{
    IREE runs an operation where its operands lie. So the placement is written
    as data movement: a device global for each device of the machine, a
    `flow.tensor.transfer` for each tensor and device that it crosses to, a
    `flow.tensor.barrier` on the local operands of an operator that also reads
    received ones (it keeps independent work concurrent), and arguments and
    results pinned. Every operator's location becomes its name in the placement.
    Kernels stay functions that are called (IREE inlines them), one a device
    where they insert into fresh tensors, which must be pinned. Constants, and
    operators that read no argument and that IREE so computes when it compiles,
    are transferred to every reader. Kernels must not loop over rows:
    `--baechi-form-kernels=row-loops=false`.

    IREE's operations are unregistered here; the pass allows unregistered
    dialects in the context.

    ```mlir
    func.func @step(%x: tensor<8xf32> {baechi.device = "host0"}, %y: tensor<8xf32> {baechi.device = "host0"}) -> tensor<8xf32> {
      %a = arith.addf %x, %x {baechi.device = "host1"} : tensor<8xf32>
      %b = arith.subf %y, %a {baechi.device = "host0"} : tensor<8xf32>
      return %b : tensor<8xf32>
    }
    ```
    becomes
    ```mlir
    "util.global"() <{initial_value = #hal.device.alias<"local"[0]> : !hal.device, sym_name = "host0", sym_visibility = "private", type = !hal.device}> : () -> ()
    "util.global"() <{initial_value = #hal.device.alias<"local"[1]> : !hal.device, sym_name = "host1", sym_visibility = "private", type = !hal.device}> : () -> ()
    func.func @step(%x: tensor<8xf32> {iree.abi.affinity = #hal.device.affinity<@host0>}, %y: tensor<8xf32> {iree.abi.affinity = #hal.device.affinity<@host0>}) -> (tensor<8xf32> {iree.abi.affinity = #hal.device.affinity<@host0>}) {
      %0 = "flow.tensor.transfer"(%x) <{operandSegmentSizes = array<i32: 1, 0>, target = #hal.device.affinity<@host1>}> : (tensor<8xf32>) -> tensor<8xf32>
      %a = arith.addf %0, %0 : tensor<8xf32>
      %1 = "flow.tensor.barrier"(%y) <{target = #hal.device.affinity<@host0>}> : (tensor<8xf32>) -> tensor<8xf32>
      %2 = "flow.tensor.transfer"(%a) <{operandSegmentSizes = array<i32: 1, 0>, target = #hal.device.affinity<@host0>}> : (tensor<8xf32>) -> tensor<8xf32>
      %b = arith.subf %1, %2 : tensor<8xf32>
      return %b : tensor<8xf32>
    }
    ```
  }];
  let options = [
    Option<"devices", "devices", "std::string",
           "\"host=local,cpu=local,cuda=cuda,hip=hip,vulkan=vulkan,metal=metal\"",
           "IREE's target of each device kind, KIND=TARGET[,...]">
  ];
  let dependentDialects = ["::baechi::BaechiDialect"];
}

#endif // BAECHI_CONVERSION_PASSES

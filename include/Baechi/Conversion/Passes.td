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

#endif // BAECHI_CONVERSION_PASSES

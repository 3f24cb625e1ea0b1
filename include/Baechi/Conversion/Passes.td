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
    Bufferizes a copy of each kernel and writes `baechi.kernel_scratch`, the
    bytes that its host code holds while it runs.
  }];
  let dependentDialects = ["::baechi::BaechiDialect"];
}

def LowerKernels : Pass<"baechi-lower-kernels", "::mlir::ModuleOp"> {
  let summary = "lower every kernel to host code";
  let description = [{
    Each kernel becomes an `llvm.func` that takes a pointer an argument, a
    pointer a result and a pointer to its scratch. Contractions call the
    implementation that `baechi.implementation` names.
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

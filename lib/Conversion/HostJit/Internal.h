//===- Internal.h - Steps of compiling host code -*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef BAECHI_LIB_CONVERSION_HOSTJIT_INTERNAL_H
#define BAECHI_LIB_CONVERSION_HOSTJIT_INTERNAL_H

#include "Baechi/Conversion/HostJit/HostJit.h"
#include "mlir/IR/OwningOpRef.h"
#include "llvm/ExecutionEngine/Orc/JITTargetMachineBuilder.h"
#include "llvm/IR/LLVMContext.h"
#include "llvm/IR/Module.h"
#include "llvm/Support/MemoryBuffer.h"

namespace baechi {

/// Splits a module of the LLVM dialect into at most `parts` of about equal
/// size that link to the same program.
llvm::SmallVector<mlir::OwningOpRef<mlir::ModuleOp>>
splitModule(mlir::ModuleOp module, unsigned parts);

/// What code calls before it would divide an integer by zero (Runtime/Abi.h).
inline constexpr const char *kDividedByZero = "baechi_divided_by_zero";

/// Makes integer divisions whose operands would end the process call
/// kDividedByZero, or overflow, and go on.
void guardDivisions(llvm::Module &module);

/// Defines the functions that LLVM calls to round to bfloat16, for `module`
/// alone, if it has such numbers.
void defineBfloatRounding(llvm::Module &module);

/// Optimises `module` for `target`, unless it is to be quick, and makes an
/// object file of it.
llvm::Expected<std::unique_ptr<llvm::MemoryBuffer>>
compileModule(llvm::Module &module, llvm::orc::JITTargetMachineBuilder target,
              HostJitOptions::Sanitizer sanitizer, HostCode::Effort effort);

/// Of the steps of compileModule: objects of another version are not used.
inline constexpr const char *kCodeVersion = "3";

} // namespace baechi

#endif // BAECHI_LIB_CONVERSION_HOSTJIT_INTERNAL_H

//===- HostKernels.cpp - Kernels to host code -*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Baechi/Conversion/HostKernels.h"
#include "Baechi/Dialect/Baechi.h"
#include "Gemm.h"
#include "Internal.h"
#include "Tiles.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "llvm/ADT/StringExtras.h"

using namespace mlir;
using namespace baechi;

namespace {
constexpr StringLiteral kOpenBlas = "openblas";
constexpr StringLiteral kOneDnn = "onednn";
constexpr StringLiteral kGenerated = "generated";

bool isKernel(func::FuncOp function) {
  return function->hasAttr(BaechiDialect::kKernel);
}

SmallVector<func::FuncOp> kernelsOf(ModuleOp module) {
  return llvm::filter_to_vector(module.getOps<func::FuncOp>(), isKernel);
}

OwningOpRef<ModuleOp> copiesOf(ArrayRef<func::FuncOp> kernels,
                               Location location) {
  OwningOpRef<ModuleOp> copies = ModuleOp::create(location);
  OpBuilder builder = OpBuilder::atBlockBegin(copies->getBody());
  for (func::FuncOp kernel : kernels)
    builder.clone(*kernel);
  return copies;
}

/// The implementation that `kernel` asks for, else its default; fails on one
/// that it does not have.
FailureOr<StringRef> implementationOf(func::FuncOp kernel) {
  SmallVector<StringRef> known = hostImplementations(kernel);
  auto asked =
      kernel->getAttrOfType<StringAttr>(BaechiDialect::kImplementation);
  StringRef chosen = asked ? asked.getValue() : known.front();
  auto *found = llvm::find(known, chosen);
  if (found == known.end())
    return kernel.emitOpError("has no host implementation '")
           << chosen << "'; it has: " << llvm::join(known, ", ");
  return *found;
}

/// Moves the kernels that are products out of `kernels`, as code on pointers.
FailureOr<OwningOpRef<ModuleOp>> takeProducts(ModuleOp kernels) {
  OwningOpRef<ModuleOp> products = ModuleOp::create(kernels.getLoc());
  OpBuilder builder = OpBuilder::atBlockEnd(products->getBody());
  VectorUnit unit = hostVectorUnit();
  for (auto kernel :
       llvm::make_early_inc_range(kernels.getOps<func::FuncOp>())) {
    FailureOr<StringRef> implementation = implementationOf(kernel);
    if (failed(implementation))
      return failure();
    if (*implementation == kOpenBlas)
      emitGemm(builder, kernel, *planGemm(kernel), GemmInterface::Cblas);
    else if (*implementation == kOneDnn)
      emitGemm(builder, kernel, *planGemm(kernel), GemmInterface::OneDnn);
    else if (auto plan = planTiles(kernel, unit))
      emitTiles(builder, kernel, *plan);
    else
      continue;
    kernel.erase();
  }
  return products;
}

void append(ModuleOp from, ModuleOp to) {
  to.getBody()->getOperations().splice(to.getBody()->end(),
                                       from.getBody()->getOperations());
}

/// The dialects that the steps create operations and attributes of by
/// themselves. (Passes load theirs; a pass that calls us depends on these.)
void loadDialects(MLIRContext *context) {
  context->loadDialect<arith::ArithDialect, linalg::LinalgDialect,
                       LLVM::LLVMDialect, memref::MemRefDialect,
                       scf::SCFDialect>();
}

/// Lowers until the scratch is known.
LogicalResult lowerToPointers(ModuleOp copies) {
  KernelSignatures signatures;
  FailureOr<OwningOpRef<ModuleOp>> products = takeProducts(copies);
  if (failed(products) || failed(bufferizeKernels(copies, signatures)) ||
      failed(lowerToLoops(copies, signatures)))
    return failure();
  for (auto kernel : copies.getOps<func::FuncOp>())
    markPointers(kernel, signatures.find(kernel.getSymNameAttr())->second);
  append(**products, copies);
  return success();
}

LogicalResult lowerCopies(ModuleOp copies) {
  return success(succeeded(lowerToPointers(copies)) &&
                 succeeded(lowerToLLVM(copies)));
}

/// True when `step` fails on this kernel alone; its errors are not shown.
bool failsAlone(func::FuncOp kernel,
                function_ref<LogicalResult(ModuleOp)> step) {
  ScopedDiagnosticHandler silence(kernel.getContext(),
                                  [](Diagnostic &) { return success(); });
  return failed(step(*copiesOf(kernel, kernel.getLoc())));
}

/// Runs `step` on copies of all kernels at once. When it fails, finds out by
/// which kernel and says so: the step's own errors rarely name the function.
FailureOr<OwningOpRef<ModuleOp>>
runOnCopies(ArrayRef<func::FuncOp> kernels, Location location,
            function_ref<LogicalResult(ModuleOp)> step) {
  OwningOpRef<ModuleOp> copies = copiesOf(kernels, location);
  if (succeeded(step(*copies)))
    return copies;
  for (func::FuncOp kernel : kernels)
    if (failsAlone(kernel, step))
      return emitError(kernel.getLoc()) << "kernel '" << kernel.getSymName()
                                        << "' cannot be lowered to host code";
  return failure();
}

/// Moves the symbols of `from` to the end of `to`. Functions keep their names;
/// constants, which only they use, are renamed where `to` has the name already.
LogicalResult moveSymbols(ModuleOp from, ModuleOp to) {
  SymbolTable names(to), own(from);
  for (Operation &op : llvm::make_early_inc_range(*from.getBody())) {
    StringAttr name = SymbolTable::getSymbolName(&op);
    Operation *same = names.lookup(name);
    if (same && isa<LLVM::LLVMFuncOp>(op)) {
      // Declarations of library functions, or of kernels for their callers.
      auto function = dyn_cast<LLVM::LLVMFuncOp>(same);
      bool defines = !cast<LLVM::LLVMFuncOp>(op).isExternal();
      if (function && !defines)
        continue;
      if (function && function.isExternal()) {
        names.erase(function);
        op.remove();
        names.insert(&op);
        continue;
      }
      return op.emitOpError("is needed by host code, but the module has '")
             << name.getValue() << "' for something else";
    }
    if (same && failed(own.renameToUnique(&op, {&names})))
      return failure();
    op.remove();
    names.insert(&op);
  }
  return success();
}
} // namespace

SmallVector<StringRef> baechi::hostImplementations(func::FuncOp kernel) {
  if (planGemm(kernel))
    return {kGenerated, kOpenBlas, kOneDnn};
  return {kGenerated};
}

LogicalResult baechi::annotateKernelScratch(ModuleOp module) {
  loadDialects(module.getContext());
  SmallVector<func::FuncOp> kernels = kernelsOf(module);
  auto copies = runOnCopies(kernels, module.getLoc(), lowerToPointers);
  if (failed(copies))
    return failure();
  for (func::FuncOp kernel : kernels)
    kernel->setAttr(BaechiDialect::kKernelScratch,
                    (*copies)
                        ->lookupSymbol(kernel.getSymNameAttr())
                        ->getAttr(BaechiDialect::kKernelScratch));
  return success();
}

LogicalResult baechi::lowerKernels(ModuleOp module) {
  loadDialects(module.getContext());
  SmallVector<func::FuncOp> kernels = kernelsOf(module);
  auto lowered = runOnCopies(kernels, module.getLoc(), lowerCopies);
  if (failed(lowered))
    return failure();
  for (func::FuncOp kernel : kernels) {
    // Memory was planned with what the kernel said.
    auto planned =
        kernel->getAttrOfType<IntegerAttr>(BaechiDialect::kKernelScratch);
    auto needed =
        (*lowered)
            ->lookupSymbol(kernel.getSymNameAttr())
            ->getAttrOfType<IntegerAttr>(BaechiDialect::kKernelScratch);
    if (planned && planned.getInt() < needed.getInt())
      return kernel.emitOpError("needs ")
             << needed.getInt() << " bytes of scratch but says "
             << planned.getInt() << "; run baechi-kernel-scratch again";
  }
  for (func::FuncOp kernel : kernels)
    kernel.erase();
  return moveSymbols(**lowered, module);
}

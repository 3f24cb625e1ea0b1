//===- HostKernels.cpp - Kernels to host code -*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Baechi/Conversion/Kernels/Host/HostKernels.h"
#include "Baechi/Analysis/ExactSums.h"
#include "Baechi/Conversion/Kernels/Host/LoweredKernels.h"
#include "Baechi/Dialect/Baechi.h"
#include "BufferProducts.h"
#include "Common/KernelCopies.h"
#include "Common/Lowering.h"
#include "EmitGemm.h"
#include "Steps.h"
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

/// The implementation that `kernel` asks for, else its default; fails on one
/// that it does not have.
FailureOr<StringRef> implementationOf(func::FuncOp kernel) {
  SmallVector<StringRef> known = hostImplementations(kernel);
  StringRef chosen = askedImplementation(kernel);
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
} // namespace

SmallVector<StringRef> baechi::hostImplementations(func::FuncOp kernel) {
  if (isExact(kernel))
    return {kExact};
  if (planGemm(kernel))
    return {kGenerated, kOpenBlas, kOneDnn};
  return {kGenerated};
}

StringRef baechi::askedImplementation(func::FuncOp kernel) {
  auto asked =
      kernel->getAttrOfType<StringAttr>(BaechiDialect::kImplementation);
  return asked ? asked.getValue() : StringRef(kGenerated);
}

void baechi::loadHostDialects(MLIRContext *context) {
  context->loadDialect<arith::ArithDialect, linalg::LinalgDialect,
                       LLVM::LLVMDialect, memref::MemRefDialect,
                       scf::SCFDialect>();
}

LogicalResult baechi::lowerToPointers(ModuleOp copies) {
  for (auto kernel : copies.getOps<func::FuncOp>())
    kernel.setSymName(hostSymbol(kernel.getSymName()));
  KernelSignatures signatures;
  FailureOr<OwningOpRef<ModuleOp>> products = takeProducts(copies);
  if (failed(products) || failed(bufferizeKernels(copies, signatures)))
    return failure();
  tileProducts(copies, signatures);
  if (failed(lowerToLoops(copies, signatures)))
    return failure();
  for (auto kernel : copies.getOps<func::FuncOp>()) {
    flattenEmptyArguments(kernel);
    markPointers(kernel, signatures.find(kernel.getSymNameAttr())->second);
  }
  append(**products, copies);
  return success();
}

LogicalResult baechi::lowerKernels(ModuleOp module) {
  return LoweredKernels().lower(module);
}

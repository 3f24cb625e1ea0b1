//===- KernelCopies.cpp - Lowering copies of kernels -*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Common/KernelCopies.h"
#include "Baechi/Analysis/Program.h"
#include "Baechi/Analysis/Stashing.h"
#include "Baechi/Dialect/Baechi.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/IR/Threading.h"

using namespace mlir;
using namespace baechi;

SmallVector<func::FuncOp> baechi::kernelsOf(ModuleOp module) {
  return llvm::filter_to_vector(
      module.getOps<func::FuncOp>(), [](func::FuncOp function) {
        return function->hasAttr(BaechiDialect::kKernel) &&
               !isHostCall(function) &&
               !function->hasAttr(BaechiDialect::kStash);
      });
}

LogicalResult baechi::checkNotCalled(ModuleOp module) {
  WalkResult called = module.walk([&](func::CallOp call) {
    auto callee = SymbolTable::lookupNearestSymbolFrom<func::FuncOp>(
        call, call.getCalleeAttr());
    if (!callee || !callee->hasAttr(BaechiDialect::kKernel) ||
        isHostCall(callee) || callee->getParentOp() != module)
      return WalkResult::advance();
    call.emitOpError("calls a kernel on tensors; run --baechi-partition on "
                     "the program that calls it, or take the kernels alone");
    return WalkResult::interrupt();
  });
  return failure(called.wasInterrupted());
}

void baechi::append(ModuleOp from, ModuleOp to) {
  to.getBody()->getOperations().splice(to.getBody()->end(),
                                       from.getBody()->getOperations());
}

OwningOpRef<ModuleOp> baechi::copiesOf(ArrayRef<func::FuncOp> kernels,
                                       Location location) {
  OwningOpRef<ModuleOp> copies = ModuleOp::create(location);
  OpBuilder builder = OpBuilder::atBlockBegin(copies->getBody());
  for (func::FuncOp kernel : kernels)
    builder.clone(*kernel);
  return copies;
}

FailureOr<OwningOpRef<ModuleOp>> baechi::runOnCopies(
    ArrayRef<func::FuncOp> kernels, Location location, StringRef target,
    function_ref<LogicalResult(ModuleOp)> step,
    function_ref<OwningOpRef<ModuleOp>(ArrayRef<func::FuncOp>, Location)>
        copy) {
  OwningOpRef<ModuleOp> copies = copy(kernels, location);
  if (succeeded(step(*copies)))
    return copies;
  // Its errors on a kernel alone are not shown.
  auto failsAlone = [&](func::FuncOp kernel) {
    ScopedDiagnosticHandler silence(kernel.getContext(),
                                    [](Diagnostic &) { return success(); });
    return failed(step(*copy(kernel, kernel.getLoc())));
  };
  for (func::FuncOp kernel : kernels)
    if (failsAlone(kernel))
      return emitError(kernel.getLoc()) << "kernel '" << kernel.getSymName()
                                        << "' cannot be lowered to " << target;
  return failure();
}

/// Of kernels on one thread at a time: few enough for several threads to have
/// some, enough for the passes to be worth another run. It does not depend on
/// the number of threads, nor does what is made of the kernels.
static constexpr size_t kGroup = 8;

FailureOr<SmallVector<OwningOpRef<ModuleOp>>> baechi::runOnGroups(
    ArrayRef<func::FuncOp> kernels, Location location, StringRef target,
    function_ref<LogicalResult(ModuleOp)> step,
    function_ref<OwningOpRef<ModuleOp>(ArrayRef<func::FuncOp>, Location)>
        copy) {
  MLIRContext *context = location.getContext();
  SmallVector<OwningOpRef<ModuleOp>> modules;
  if (kernels.size() > kGroup) {
    // On one thread: it loads what the passes need.
    OwningOpRef<ModuleOp> nothing = ModuleOp::create(location);
    if (failed(step(*nothing)))
      return failure();
    for (auto rest = kernels; !rest.empty();) {
      size_t count = std::min(kGroup, rest.size());
      modules.push_back(copy(rest.take_front(count), location));
      rest = rest.drop_front(count);
    }
    // What is wrong is told below, in the kernels' order.
    ScopedDiagnosticHandler silence(context,
                                    [](Diagnostic &) { return success(); });
    if (succeeded(failableParallelForEach(
            context, modules,
            [&](OwningOpRef<ModuleOp> &copies) { return step(*copies); })))
      return modules;
    modules.clear();
  }
  FailureOr<OwningOpRef<ModuleOp>> whole =
      runOnCopies(kernels, location, target, step, copy);
  if (failed(whole))
    return failure();
  modules.push_back(std::move(*whole));
  return modules;
}

LogicalResult baechi::checkPlannedScratch(func::FuncOp kernel, int64_t needed,
                                          StringRef pass) {
  auto planned =
      kernel->getAttrOfType<IntegerAttr>(BaechiDialect::kKernelScratch);
  if (!planned || planned.getInt() >= needed)
    return success();
  return kernel.emitOpError("needs ")
         << needed << " bytes of scratch but says " << planned.getInt()
         << "; run " << pass << " again";
}

LogicalResult baechi::moveSymbols(ModuleOp from, ModuleOp to,
                                  StringRef target) {
  SymbolTable names(to), own(from);
  for (Operation &op : llvm::make_early_inc_range(*from.getBody())) {
    StringAttr name = SymbolTable::getSymbolName(&op);
    Operation *same = names.lookup(name);
    if (same && isa<LLVM::LLVMFuncOp>(op)) {
      // Declarations of library functions, or of kernels for their callers.
      auto function = dyn_cast<LLVM::LLVMFuncOp>(same);
      bool defines = !cast<LLVM::LLVMFuncOp>(op).isExternal();
      if (function && function.isExternal() && !defines)
        continue;
      if (function && function.isExternal()) {
        names.erase(function);
        op.remove();
        names.insert(&op);
        continue;
      }
      return op.emitOpError("is needed by ")
             << target << ", but the module has '" << name.getValue()
             << "' for something else";
    }
    if (same && failed(own.renameToUnique(&op, {&names})))
      return failure();
    op.remove();
    names.insert(&op);
  }
  return success();
}

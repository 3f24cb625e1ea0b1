//===- Lower.cpp - Device programs to calls of kernels -*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Baechi/Analysis/DeviceProgram.h"
#include "Baechi/Conversion/Devices/Manifest.h"
#include "Baechi/Conversion/Passes.h"
#include "DeviceEntry.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"

namespace baechi {
#define GEN_PASS_DEF_LOWER
#include "Baechi/Conversion/Passes.h.inc"
} // namespace baechi

using namespace mlir;
using namespace baechi;

namespace {
struct Lower : public baechi::impl::LowerBase<Lower> {
  using LowerBase::LowerBase;

  void runOnOperation() override {
    ModuleOp module = getOperation();
    if (std::string mistake = wrongTarget(target.getValue());
        !mistake.empty()) {
      emitError(module.getLoc()) << mistake;
      return signalPassFailure();
    }
    FailureOr<SmallVector<DeviceProgram>> programs = devicePrograms(module);
    if (failed(programs))
      return signalPassFailure();
    FailureOr<std::string> manifest = writeManifest(module, prefix);
    if (failed(manifest))
      return signalPassFailure();
    // The step's declaration goes, and with it what could be called.
    for (auto function : module.getOps<func::FuncOp>()) {
      WalkResult calls = function.walk([&](func::CallOp call) {
        auto callee = module.lookupSymbol<func::FuncOp>(call.getCallee());
        if (!callee || !callee.isDeclaration())
          return WalkResult::advance();
        call.emitOpError() << "calls @" << call.getCallee()
                           << ", which devices run as a program now; take the "
                              "caller @"
                           << function.getName() << " away";
        return WalkResult::interrupt();
      });
      if (calls.wasInterrupted())
        return signalPassFailure();
    }
    // Kernels are called as functions on pointers.
    for (auto kernel : module.getOps<func::FuncOp>())
      if (kernel->hasAttr(BaechiDialect::kKernel) && !kernel.isDeclaration()) {
        kernel.emitOpError()
            << "is a kernel on tensors; run --baechi-lower-kernels first";
        return signalPassFailure();
      }
    for (DeviceProgram program : *programs)
      if (program.spec.getKind() == "cuda" && target != "cuda") {
        emitError(program.module.getLoc())
            << "device '" << program.name
            << "' is a GPU; lower with target=cuda, for GPUs and host devices";
        return signalPassFailure();
      }
    // The manifest is of it, too.
    auto whole =
        module.lookupSymbol<func::FuncOp>(programs->front().step.getName());
    FailureOr<SmallVector<BorderTensor>> arguments = borderArguments(whole);
    if (failed(arguments))
      return signalPassFailure();
    LendableArguments lendable(whole, *arguments, *programs);
    RuntimeInterface runtime(module);
    for (DeviceProgram program : *programs)
      if (failed(writeEntry(runtime, program, prefix, lendable)))
        return signalPassFailure();
    embed(module, *manifest);

    for (auto function :
         llvm::make_early_inc_range(module.getOps<func::FuncOp>()))
      if (function.isDeclaration())
        function.erase();
    for (DeviceProgram program : *programs)
      program.module.erase();
    // Nothing is left to place, and what is left is plain LLVM dialect.
    module->removeAttr(BaechiDialect::kMachine);
  }

  /// The manifest as a string of the program's own.
  void embed(ModuleOp module, StringRef manifest) {
    OpBuilder builder = OpBuilder::atBlockBegin(module.getBody());
    std::string text = manifest.str();
    text.push_back('\0');
    auto type = LLVM::LLVMArrayType::get(builder.getI8Type(), text.size());
    LLVM::GlobalOp::create(builder, module.getLoc(), type, /*isConstant=*/true,
                           LLVM::Linkage::External, prefix + "_program",
                           builder.getStringAttr(text));
  }
};
} // namespace

StringRef baechi::manifestIn(ModuleOp module, StringRef prefix) {
  auto global =
      module.lookupSymbol<LLVM::GlobalOp>((prefix + "_program").str());
  return cast<StringAttr>(global.getValueAttr()).getValue().drop_back();
}

std::string baechi::wrongTarget(StringRef target) {
  if (target == "host" || target == "cuda")
    return "";
  return ("unknown target '" + target + "'; known: host, cuda").str();
}

//===- Compile.cpp - LLVM IR to an object file -*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Internal.h"
#include "llvm/Analysis/CGSCCPassManager.h"
#include "llvm/Analysis/LoopAnalysisManager.h"
#include "llvm/Analysis/TargetLibraryInfo.h"
#include "llvm/ExecutionEngine/Orc/CompileUtils.h"
#include "llvm/Passes/PassBuilder.h"
#include "llvm/Target/TargetMachine.h"
#include "llvm/Transforms/Instrumentation/ThreadSanitizer.h"

using namespace baechi;

namespace {
void optimize(llvm::Module &module, llvm::TargetMachine &machine,
              HostJitOptions::Sanitizer sanitizer) {
  llvm::PipelineTuningOptions tuning;
  tuning.LoopVectorization = true;
  tuning.LoopInterleaving = true;
  // Half of the compile time, and no gain on kernels of loops.
  tuning.SLPVectorization = false;
  tuning.LoopUnrolling = false;
  llvm::PassBuilder builder(&machine, tuning);
  llvm::LoopAnalysisManager loops;
  llvm::FunctionAnalysisManager functions;
  llvm::CGSCCAnalysisManager cgscc;
  llvm::ModuleAnalysisManager modules;
  builder.registerModuleAnalyses(modules);
  builder.registerCGSCCAnalyses(cgscc);
  builder.registerFunctionAnalyses(functions);
  builder.registerLoopAnalyses(loops);
  builder.crossRegisterProxies(loops, functions, cgscc, modules);
  llvm::ModulePassManager passes =
      builder.buildPerModuleDefaultPipeline(llvm::OptimizationLevel::O2);
  // The process initialised the sanitizer's runtime already: no constructor.
  if (sanitizer == HostJitOptions::Sanitizer::Thread)
    passes.addPass(
        llvm::createModuleToFunctionPassAdaptor(llvm::ThreadSanitizerPass()));
  passes.run(module, modules);
}
} // namespace

llvm::Expected<std::unique_ptr<llvm::MemoryBuffer>> baechi::compileModule(
    llvm::Module &module, llvm::orc::JITTargetMachineBuilder target,
    HostJitOptions::Sanitizer sanitizer, HostCode::Effort effort) {
  if (effort == HostCode::Effort::Quick)
    target.setCodeGenOptLevel(llvm::CodeGenOptLevel::None);
  auto machine = target.createTargetMachine();
  if (!machine)
    return machine.takeError();
  module.setDataLayout((*machine)->createDataLayout());
  module.setTargetTriple((*machine)->getTargetTriple());
  // ThreadSanitizer passes over accesses of more than 16 bytes.
  llvm::StringRef width =
      sanitizer == HostJitOptions::Sanitizer::Thread ? "128" : "512";
  defineBfloatRounding(module);
  for (llvm::Function &function : module) {
    if (function.isDeclaration())
      continue;
    function.addFnAttr("prefer-vector-width", width);
    function.addFnAttr(llvm::Attribute::NoUnwind);
    if (sanitizer == HostJitOptions::Sanitizer::Thread)
      function.addFnAttr(llvm::Attribute::SanitizeThread);
  }
  guardDivisions(module);
  if (effort == HostCode::Effort::Best)
    optimize(module, **machine, sanitizer);
  return llvm::orc::SimpleCompiler(**machine)(module);
}

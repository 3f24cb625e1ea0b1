//===- HostJit.cpp - Host code in memory -*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Baechi/Conversion/HostJit.h"
#include "Baechi/Conversion/GemmLibraries.h"
#include "Internal.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/IR/Diagnostics.h"
#include "mlir/Target/LLVMIR/Export.h"
#include "llvm/ExecutionEngine/Orc/LLJIT.h"
#include "llvm/Support/TargetSelect.h"
#include "llvm/Support/ThreadPool.h"
#include "llvm/TargetParser/Host.h"

using namespace mlir;
using namespace baechi;
namespace orc = llvm::orc;

struct HostJit::Implementation {
  HostJitOptions options;
  orc::JITTargetMachineBuilder target;
  std::unique_ptr<orc::LLJIT> jit;
  /// What the linker said besides the error that it returned.
  std::string linkErrors;
  llvm::SmallPtrSet<const GemmLibrary *, 2> gemmLibraries;
  std::vector<std::unique_ptr<llvm::MemoryBuffer>> objects;

  llvm::Error define(llvm::StringRef name, void *address) {
    orc::SymbolMap symbols;
    symbols[jit->mangleAndIntern(name)] = {orc::ExecutorAddr::fromPtr(address),
                                           llvm::JITSymbolFlags::Exported |
                                               llvm::JITSymbolFlags::Callable};
    return jit->getMainJITDylib().define(
        orc::absoluteSymbols(std::move(symbols)));
  }
};

HostJit::HostJit(std::unique_ptr<Implementation> implementation)
    : implementation(std::move(implementation)) {}
HostJit::~HostJit() = default;

llvm::Expected<std::unique_ptr<HostJit>>
HostJit::create(HostJitOptions options) {
  llvm::InitializeNativeTarget();
  llvm::InitializeNativeTargetAsmPrinter();
  auto target = orc::JITTargetMachineBuilder::detectHost();
  if (!target)
    return target.takeError();
  // As the linker of LLJIT wants it, and a shared object.
  target->setRelocationModel(llvm::Reloc::PIC_);
  target->setCodeModel(llvm::CodeModel::Small);
  auto jit = orc::LLJITBuilder().setJITTargetMachineBuilder(*target).create();
  if (!jit)
    return jit.takeError();
  auto implementation = std::make_unique<Implementation>(
      Implementation{std::move(options), std::move(*target), std::move(*jit),
                     /*linkErrors=*/{}});
  implementation->jit->getExecutionSession().setErrorReporter(
      [state = implementation.get()](llvm::Error error) {
        state->linkErrors += llvm::toString(std::move(error)) + "\n";
      });
  // Code that runs outside a session, to be measured say, reports to nobody.
  implementation->options.symbols.try_emplace(kDividedByZero,
                                              reinterpret_cast<void *>(+[] {}));
  for (const auto &symbol : implementation->options.symbols)
    if (auto error = implementation->define(symbol.getKey(), symbol.getValue()))
      return std::move(error);
  return std::unique_ptr<HostJit>(new HostJit(std::move(implementation)));
}

llvm::Error HostJit::add(ModuleOp module) {
  Implementation &state = *implementation;
  for (Operation &op : *module.getBody())
    if (!isa_and_nonnull<LLVM::LLVMDialect>(op.getDialect()))
      return llvm::createStringError(
          "only the LLVM dialect is compiled; the module has a '" +
          op.getName().getStringRef() + "'");
  // Diagnostics of the translation become part of the returned error.
  std::string diagnostics;
  ScopedDiagnosticHandler handler(module.getContext(), [&](Diagnostic &d) {
    diagnostics += d.str() + "\n";
    return success();
  });

  struct Part {
    std::unique_ptr<llvm::LLVMContext> context;
    std::unique_ptr<llvm::Module> module;
    llvm::Expected<std::unique_ptr<llvm::MemoryBuffer>> object = nullptr;
  };
  llvm::SmallVector<Part> parts;
  for (auto &split : splitModule(module, state.options.threads)) {
    auto context = std::make_unique<llvm::LLVMContext>();
    auto translated = translateModuleToLLVMIR(*split, *context);
    if (!translated)
      return llvm::createStringError("cannot translate to LLVM IR: " +
                                     diagnostics);
    parts.push_back({std::move(context), std::move(translated)});
  }
  for (const GemmLibrary &library : gemmLibraries()) {
    bool isCalled = llvm::any_of(parts, [&](const Part &part) {
      return part.module->getFunction(library.symbols.front());
    });
    if (!isCalled || !state.gemmLibraries.insert(&library).second)
      continue;
    auto addresses = loadGemmLibrary(library);
    if (!addresses)
      return addresses.takeError();
    for (auto [name, address] : llvm::zip_equal(library.symbols, *addresses))
      if (auto error = state.define(name, address))
        return error;
  }

  auto compile = [&](Part &part) {
    part.object =
        compileModule(*part.module, state.target, state.options.sanitizer);
  };
  {
    llvm::DefaultThreadPool pool(
        llvm::hardware_concurrency(state.options.threads));
    for (Part &part : llvm::drop_begin(parts))
      pool.async([&] { compile(part); });
    compile(parts.front());
    pool.wait();
  }

  llvm::Error failure = llvm::Error::success();
  for (Part &part : parts) {
    if (part.object && state.options.keepObjects)
      state.objects.push_back(llvm::MemoryBuffer::getMemBufferCopy(
          (*part.object)->getBuffer(), (*part.object)->getBufferIdentifier()));
    if (!part.object)
      failure = llvm::joinErrors(std::move(failure), part.object.takeError());
    else
      failure =
          llvm::joinErrors(std::move(failure),
                           state.jit->addObjectFile(std::move(*part.object)));
  }
  return failure;
}

llvm::SmallVector<llvm::MemoryBufferRef> HostJit::objects() const {
  llvm::SmallVector<llvm::MemoryBufferRef> kept;
  for (const auto &object : implementation->objects)
    kept.push_back(object->getMemBufferRef());
  return kept;
}

llvm::Expected<void *> HostJit::lookup(llvm::StringRef name) {
  implementation->linkErrors.clear();
  auto address = implementation->jit->lookup(name);
  if (address)
    return address->toPtr<void *>();
  return llvm::createStringError(
      "no host code for '" + name +
      "': " + llvm::toString(address.takeError()) +
      (implementation->linkErrors.empty() ? "" : "; ") +
      implementation->linkErrors);
}

std::vector<std::string> HostJit::hostExtensions() {
  // LLVM's names of what it selects instructions from, and the system's.
  constexpr std::pair<const char *, const char *> extensions[] = {
      {"sse3", "pni"},
      {"ssse3", "ssse3"},
      {"sse4.1", "sse4_1"},
      {"sse4.2", "sse4_2"},
      {"sse4a", "sse4a"},
      {"popcnt", "popcnt"},
      {"lzcnt", "abm"},
      {"movbe", "movbe"},
      {"bmi", "bmi1"},
      {"bmi2", "bmi2"},
      {"tbm", "tbm"},
      {"adx", "adx"},
      {"avx", "avx"},
      {"avx2", "avx2"},
      {"fma", "fma"},
      {"fma4", "fma4"},
      {"xop", "xop"},
      {"f16c", "f16c"},
      {"gfni", "gfni"},
      {"pclmul", "pclmulqdq"},
      {"vpclmulqdq", "vpclmulqdq"},
      {"avxvnni", "avx_vnni"},
      {"avxifma", "avx_ifma"},
      {"avxneconvert", "avx_ne_convert"},
      {"avx512f", "avx512f"},
      {"avx512bw", "avx512bw"},
      {"avx512cd", "avx512cd"},
      {"avx512dq", "avx512dq"},
      {"avx512vl", "avx512vl"},
      {"avx512ifma", "avx512ifma"},
      {"avx512vbmi", "avx512vbmi"},
      {"avx512vbmi2", "avx512_vbmi2"},
      {"avx512vnni", "avx512_vnni"},
      {"avx512bitalg", "avx512_bitalg"},
      {"avx512vpopcntdq", "avx512_vpopcntdq"},
      {"avx512bf16", "avx512_bf16"},
      {"avx512fp16", "avx512_fp16"},
      {"amx-tile", "amx_tile"},
      {"neon", "asimd"},
      {"fullfp16", "asimdhp"},
      {"fp16fml", "asimdfhm"},
      {"dotprod", "asimddp"},
      {"rdm", "asimdrdm"},
      {"i8mm", "i8mm"},
      {"bf16", "bf16"},
      {"lse", "atomics"},
      {"sve", "sve"},
      {"sve2", "sve2"}};
  llvm::StringMap<bool> features = llvm::sys::getHostCPUFeatures();
  std::vector<std::string> found;
  for (auto [feature, name] : extensions)
    if (features.lookup(feature))
      found.push_back(name);
  return found;
}

std::string HostJit::hostTarget() {
  std::string target = llvm::sys::getHostCPUName().str();
  llvm::StringMap<bool> features = llvm::sys::getHostCPUFeatures();
  for (llvm::StringRef extension :
       {"avx2", "fma", "avx512f", "avx512bw", "avx512vl", "avx512bf16",
        "amx-tile", "neon", "sve", "sve2"})
    if (features.lookup(extension))
      target += ("+" + extension).str();
  return target;
}

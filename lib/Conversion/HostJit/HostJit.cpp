//===- HostJit.cpp - Host code in memory -*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Baechi/Conversion/HostJit/HostJit.h"
#include "Baechi/Conversion/HostJit/GemmLibraries.h"
#include "Baechi/Conversion/HostJit/ObjectStore.h"
#include "Internal.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/IR/Diagnostics.h"
#include "mlir/IR/Threading.h"
#include "mlir/Target/LLVMIR/Export.h"
#include "llvm/Analysis/TargetLibraryInfo.h"
#include "llvm/Config/llvm-config.h"
#include "llvm/ExecutionEngine/Orc/LLJIT.h"
#include "llvm/IR/RuntimeLibcalls.h"
#include "llvm/MC/MCSubtargetInfo.h"
#include "llvm/Support/TargetSelect.h"
#include "llvm/Target/TargetMachine.h"
#include "llvm/TargetParser/Host.h"

using namespace mlir;
using namespace baechi;
namespace orc = llvm::orc;

namespace {
/// What is compiled by itself.
struct Part {
  OwningOpRef<ModuleOp> source;
  std::unique_ptr<llvm::LLVMContext> context;
  std::unique_ptr<llvm::Module> module;
  llvm::Expected<std::unique_ptr<llvm::MemoryBuffer>> object = nullptr;
};

/// A module that is being compiled.
struct Begun {
  explicit Begun(CompileThreads &threads) : batch(threads) {}
  ~Begun() {
    batch.wait();
    for (Part &part : parts) // of what was not finished
      llvm::consumeError(part.object.takeError());
  }

  std::vector<Part> parts;
  HostCode code;
  bool isStored = false; ///< each part is a function that the store gets
  CompileThreads::Batch batch;
};

/// What code depends on besides its source.
std::string describeCompiler(const orc::JITTargetMachineBuilder &target,
                             HostJitOptions::Sanitizer sanitizer) {
  return std::string(kCodeVersion) + " " LLVM_VERSION_STRING " " +
         target.getTargetTriple().str() + " " + target.getCPU() + " " +
         target.getFeatures().getString() + " " +
         std::to_string(int(sanitizer));
}

/// Each by itself, on the context's threads.
llvm::Error translate(std::vector<Part> &parts) {
  if (parts.empty())
    return llvm::Error::success();
  MLIRContext *context = parts.front().source->getContext();
  // Diagnostics of the translation become part of the returned error.
  std::string diagnostics;
  ScopedDiagnosticHandler handler(context, [&](Diagnostic &d) {
    diagnostics += d.str() + "\n";
    return success();
  });
  if (succeeded(failableParallelForEach(context, parts, [](Part &part) {
        part.context = std::make_unique<llvm::LLVMContext>();
        part.module = translateModuleToLLVMIR(*part.source, *part.context);
        return success(part.module != nullptr);
      })))
    return llvm::Error::success();
  return llvm::createStringError("cannot translate to LLVM IR: " + diagnostics);
}
} // namespace

struct HostJit::Implementation {
  Implementation(HostJitOptions options, orc::JITTargetMachineBuilder target,
                 std::unique_ptr<orc::LLJIT> jit)
      : options(std::move(options)), target(std::move(target)),
        jit(std::move(jit)) {}

  HostJitOptions options;
  orc::JITTargetMachineBuilder target;
  std::unique_ptr<orc::LLJIT> jit;
  /// What the linker said besides the error that it returned.
  std::string linkErrors;
  llvm::SmallPtrSet<const GemmLibrary *, 2> gemmLibraries;
  std::vector<std::unique_ptr<llvm::MemoryBuffer>> objects;
  std::optional<ObjectStore> store;
  std::vector<std::unique_ptr<Begun>> begun;
  bool isForGood = false;

  llvm::Error define(llvm::StringRef name, void *address) {
    orc::SymbolMap symbols;
    symbols[jit->mangleAndIntern(name)] = {orc::ExecutorAddr::fromPtr(address),
                                           llvm::JITSymbolFlags::Exported |
                                               llvm::JITSymbolFlags::Callable};
    return jit->getMainJITDylib().define(
        orc::absoluteSymbols(std::move(symbols)));
  }

  /// Makes the functions of those libraries known whose first one is called.
  llvm::Error defineGemm(llvm::function_ref<bool(llvm::StringRef)> isCalled) {
    for (const GemmLibrary &library : baechi::gemmLibraries()) {
      if (!isCalled(library.symbols.front()) ||
          gemmLibraries.contains(&library))
        continue;
      auto addresses = loadGemmLibrary(library);
      if (!addresses)
        return addresses.takeError();
      gemmLibraries.insert(&library);
      for (auto [name, address] : llvm::zip_equal(library.symbols, *addresses))
        if (llvm::Error error = define(name, address))
          return error;
    }
    return llvm::Error::success();
  }

  llvm::Error link(std::unique_ptr<llvm::MemoryBuffer> object) {
    if (options.keepObjects)
      objects.push_back(llvm::MemoryBuffer::getMemBufferCopy(
          object->getBuffer(), object->getBufferIdentifier()));
    return jit->addObjectFile(std::move(object));
  }

  /// Links code whose source is not known any more.
  llvm::Error linkFinished(std::unique_ptr<llvm::MemoryBuffer> object) {
    if (llvm::Error error = defineGemm([&](llvm::StringRef name) {
          return object->getBuffer().contains(name);
        }))
      return error;
    return link(std::move(object));
  }
};

HostJit::HostJit(std::unique_ptr<Implementation> implementation)
    : implementation(std::move(implementation)) {}
HostJit::~HostJit() {
  if (implementation->isForGood)
    (void)implementation.release();
}

void HostJit::keepForGood() { implementation->isForGood = true; }

llvm::Expected<std::unique_ptr<HostJit>>
HostJit::create(HostJitOptions options) {
  llvm::InitializeNativeTarget();
  llvm::InitializeNativeTargetAsmPrinter();
  auto target = orc::JITTargetMachineBuilder::detectHost();
  if (!target)
    return target.takeError();
  if (!options.processor.empty()) {
    auto here = target->createTargetMachine();
    if (!here)
      return here.takeError();
    if (!(*here)->getMCSubtargetInfo()->isCPUStringValid(options.processor))
      return llvm::createStringError("there is no processor '" +
                                     options.processor + "' of " +
                                     target->getTargetTriple().getArchName() +
                                     "; LLVM's names are known, as x86-64-v3");
    target->setCPU(options.processor);
    target->getFeatures() = llvm::SubtargetFeatures();
  }
  // As the linker of LLJIT wants it, and a shared object.
  target->setRelocationModel(llvm::Reloc::PIC_);
  target->setCodeModel(llvm::CodeModel::Small);
  auto jit = orc::LLJITBuilder().setJITTargetMachineBuilder(*target).create();
  if (!jit)
    return jit.takeError();
  auto implementation = std::make_unique<Implementation>(
      std::move(options), std::move(*target), std::move(*jit));
  if (!implementation->options.store.empty()) {
    auto store = ObjectStore::open(implementation->options.store);
    if (!store)
      return store.takeError();
    implementation->store = std::move(*store);
  }
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

std::string HostJit::storeKey(llvm::StringRef text) const {
  return ObjectStore::key(text,
                          describeCompiler(implementation->target,
                                           implementation->options.sanitizer));
}

llvm::Expected<bool> HostJit::addStored(llvm::StringRef key) {
  Implementation &state = *implementation;
  auto object = state.store ? state.store->load(key) : nullptr;
  if (!object)
    return false;
  if (llvm::Error error = state.linkFinished(std::move(object)))
    return error;
  return true;
}

llvm::Error HostJit::addObject(llvm::StringRef object) {
  return implementation->linkFinished(
      llvm::MemoryBuffer::getMemBufferCopy(object, "object"));
}

std::string HostJit::takeStoreWarnings() {
  return implementation->store ? implementation->store->takeWarnings() : "";
}

void HostJit::warnOfStore(Location location) {
  std::string warnings = takeStoreWarnings();
  SmallVector<StringRef> lines;
  StringRef(warnings).split(lines, '\n', /*MaxSplit=*/-1, /*KeepEmpty=*/false);
  for (StringRef line : lines)
    emitWarning(location) << line;
}

namespace {
/// True for names that code which LLVM or a kernel makes refers to, and means a
/// library's function by.
bool isLibraryName(llvm::StringRef name) {
  static const llvm::TargetLibraryInfoImpl known{
      llvm::Triple(llvm::sys::getProcessTriple())};
  llvm::LibFunc function;
  return known.getLibFunc(name, function) ||
         !llvm::RTLIB::RuntimeLibcallsInfo::lookupLibcallImplName(name)
              .empty() ||
         llvm::any_of(gemmLibraries(), [&](const GemmLibrary &library) {
           return llvm::is_contained(library.symbols, name);
         });
}
} // namespace

llvm::Error HostJit::add(ModuleOp module, const HostCode &code) {
  if (llvm::Error error = begin(module, code))
    return error;
  return finish();
}

llvm::Error HostJit::begin(ModuleOp module, const HostCode &code) {
  Implementation &state = *implementation;
  size_t functions = 0, stored = 0;
  bool shares = false;
  for (Operation &op : *module.getBody()) {
    if (!isa_and_nonnull<LLVM::LLVMDialect>(op.getDialect()))
      return llvm::createStringError(
          "only the LLVM dialect is compiled; the module has a '" +
          op.getName().getStringRef() + "'");
    // A variable is in one object only, and others may need it.
    if (auto variable = dyn_cast<LLVM::GlobalOp>(op))
      shares |= variable.getLinkage() != LLVM::Linkage::Private &&
                variable.getLinkage() != LLVM::Linkage::Internal;
    auto function = dyn_cast<LLVM::LLVMFuncOp>(op);
    if (!function || function.isExternal())
      continue;
    if (isLibraryName(function.getName()))
      return llvm::createStringError(
          "the module defines '" + function.getName() +
          "', which is also a library's function that compiled code may call: "
          "give it another name");
    ++functions;
    stored += code.keys.contains(function.getName());
  }
  if (llvm::Error error = state.defineGemm([&](llvm::StringRef name) {
        return module.lookupSymbol(name) != nullptr;
      }))
    return error;

  if (!state.options.workers)
    state.options.workers =
        std::make_shared<CompileThreads>(state.options.threads);
  auto begun = std::make_unique<Begun>(*state.options.workers);
  begun->code = code;
  // Each by itself, unless there are functions that no key stands for.
  bool store = state.store && !shares && stored > 0 && stored == functions;
  for (auto &split :
       splitModule(module, store ? functions : state.options.threads)) {
    begun->parts.emplace_back();
    begun->parts.back().source = std::move(split);
  }
  begun->isStored = store && begun->parts.size() == functions;
  if (llvm::Error error = translate(begun->parts))
    return error;
  for (Part &part : begun->parts)
    begun->batch.begin([&state, &part, effort = code.effort] {
      if (state.options.stopped && state.options.stopped()) {
        part.object = llvm::createStringError("stopped");
        return;
      }
      part.object = compileModule(*part.module, state.target,
                                  state.options.sanitizer, effort);
      part.module.reset();
      part.context.reset();
    });
  state.begun.push_back(std::move(begun));
  return llvm::Error::success();
}

llvm::Error HostJit::finish() {
  Implementation &state = *implementation;
  llvm::Error failure = llvm::Error::success();
  bool saves = false;
  for (std::unique_ptr<Begun> &begun : std::exchange(state.begun, {})) {
    begun->batch.wait();
    saves |= begun->isStored;
    for (Part &part : begun->parts) {
      if (!part.object) {
        failure = llvm::joinErrors(std::move(failure), part.object.takeError());
        continue;
      }
      if (begun->isStored)
        for (auto function : part.source->getOps<LLVM::LLVMFuncOp>())
          if (!function.isExternal())
            state.store->save(begun->code.keys.lookup(function.getName()),
                              (*part.object)->getBuffer());
      failure = llvm::joinErrors(std::move(failure),
                                 state.link(std::move(*part.object)));
    }
  }
  if (saves)
    state.store->prune();
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

bool HostJit::isForThisHost() const {
  return implementation->options.processor.empty();
}

/// Those of the processor that the code is for.
static llvm::StringMap<bool> featuresOf(orc::JITTargetMachineBuilder target) {
  llvm::StringMap<bool> features;
  auto machine = llvm::cantFail(target.createTargetMachine());
  for (const auto &feature :
       machine->getMCSubtargetInfo()->getEnabledProcessorFeatures())
    features[feature.Key] = true;
  return features;
}

std::vector<std::string> HostJit::extensions() const {
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
  llvm::StringMap<bool> features = isForThisHost()
                                       ? llvm::sys::getHostCPUFeatures()
                                       : featuresOf(implementation->target);
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

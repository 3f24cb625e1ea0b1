//===- Candidates.cpp - Code of kernels that is timed alone ---------------===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Candidates.h"
#include "Baechi/Conversion/Kernels/Host/HostKernels.h"
#include "Baechi/Dialect/Baechi.h"
#include "PackedEntry.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "llvm/ADT/MapVector.h"

using namespace mlir;
using namespace baechi;

namespace {
/// Candidates of one implementation: of each kernel one at most, so that their
/// code has the kernels' own names, as a step's has.
FailureOr<std::unique_ptr<HostJit>> compileOf(ModuleOp module,
                                              ArrayRef<Candidate *> candidates,
                                              const MeasureOptions &asked) {
  auto report = [&](llvm::Error error) {
    return emitError(module.getLoc()) << llvm::toString(std::move(error));
  };
  HostJitOptions options;
  options.stopped = asked.stopped;
  options.store = asked.store;
  auto created = HostJit::create(std::move(options));
  if (!created)
    return report(created.takeError());
  HostJit &jit = **created;

  OwningOpRef<ModuleOp> code = ModuleOp::create(module.getLoc());
  OpBuilder builder = OpBuilder::atBlockEnd(code->getBody());
  HostCode compiled;
  SmallVector<std::string> stored;
  for (Candidate *candidate : candidates) {
    auto copy = cast<func::FuncOp>(builder.clone(*candidate->kernel));
    copy->removeAttr(BaechiDialect::kKernelScratch);
    copy->setAttr(BaechiDialect::kImplementation,
                  builder.getStringAttr(candidate->implementation));
    std::string key = jit.storeKey(storedText(copy));
    llvm::Expected<bool> found = jit.addStored(key);
    if (!found)
      return report(found.takeError());
    std::string symbol = hostSymbol(copy.getName());
    if (*found)
      stored.push_back(std::move(symbol));
    else
      compiled.keys[symbol] = std::move(key);
  }
  LoweredKernels own;
  if (failed((asked.lowered ? *asked.lowered : own).lower(*code)))
    return failure();

  // Beside the code, which is the store's.
  OwningOpRef<ModuleOp> entries = ModuleOp::create(module.getLoc());
  OpBuilder declares = OpBuilder::atBlockEnd(entries->getBody());
  SmallVector<std::string> symbols;
  for (Candidate *candidate : candidates) {
    auto lowered = code->lookupSymbol<LLVM::LLVMFuncOp>(
        hostSymbol(candidate->kernel.getSymName()));
    candidate->scratchBytes =
        lowered->getAttrOfType<IntegerAttr>(BaechiDialect::kKernelScratch)
            .getInt();
    symbols.push_back(addPackedEntry(cast<LLVM::LLVMFuncOp>(
        declares.cloneWithoutRegions(*lowered.getOperation()))));
  }
  for (const std::string &symbol : stored)
    code->lookupSymbol<LLVM::LLVMFuncOp>(symbol).erase();
  if (!compiled.keys.empty())
    if (llvm::Error error = jit.add(*code, compiled))
      return report(std::move(error));
  HostCode quick;
  quick.effort = HostCode::Effort::Quick;
  if (llvm::Error error = jit.add(*entries, quick))
    return report(std::move(error));
  jit.warnOfStore(module.getLoc());
  for (auto [candidate, symbol] : llvm::zip_equal(candidates, symbols)) {
    auto address = jit.lookup(symbol);
    if (!address)
      return report(address.takeError());
    candidate->code = *address;
  }
  return std::move(*created);
}
} // namespace

FailureOr<CandidateCode>
baechi::compileCandidates(ModuleOp module,
                          MutableArrayRef<Candidate> candidates,
                          const MeasureOptions &options) {
  llvm::MapVector<StringRef, SmallVector<Candidate *>> byImplementation;
  for (Candidate &candidate : candidates)
    byImplementation[candidate.implementation].push_back(&candidate);
  CandidateCode code;
  for (const auto &[implementation, some] : byImplementation) {
    auto jit = compileOf(module, some, options);
    if (failed(jit))
      return failure();
    code.push_back(std::move(*jit));
  }
  return code;
}

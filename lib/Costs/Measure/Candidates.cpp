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
struct SameCode {
  SmallVector<Candidate *> candidates;
  std::unique_ptr<HostJit> jit;
  SmallVector<std::string> symbols; ///< of the candidates, to be called by
};

LogicalResult report(ModuleOp module, llvm::Error error) {
  return emitError(module.getLoc()) << llvm::toString(std::move(error));
}

/// Other threads go on with it.
LogicalResult begin(ModuleOp module, SameCode &same,
                    const MeasureOptions &asked) {
  HostJitOptions options;
  options.stopped = asked.stopped;
  options.store = asked.store;
  options.workers = asked.workers;
  auto created = HostJit::create(std::move(options));
  if (!created)
    return report(module, created.takeError());
  same.jit = std::move(*created);
  HostJit &jit = *same.jit;

  OwningOpRef<ModuleOp> code = ModuleOp::create(module.getLoc());
  OpBuilder builder = OpBuilder::atBlockEnd(code->getBody());
  HostCode compiled;
  SmallVector<std::string> stored;
  for (Candidate *candidate : same.candidates) {
    auto copy = cast<func::FuncOp>(builder.clone(*candidate->kernel));
    copy->removeAttr(BaechiDialect::kKernelScratch);
    copy->setAttr(BaechiDialect::kImplementation,
                  builder.getStringAttr(candidate->implementation));
    std::string key = jit.storeKey(storedText(copy));
    llvm::Expected<bool> found = jit.addStored(key);
    if (!found)
      return report(module, found.takeError());
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
  for (Candidate *candidate : same.candidates) {
    auto lowered = code->lookupSymbol<LLVM::LLVMFuncOp>(
        hostSymbol(candidate->kernel.getSymName()));
    candidate->scratchBytes =
        lowered->getAttrOfType<IntegerAttr>(BaechiDialect::kKernelScratch)
            .getInt();
    same.symbols.push_back(addPackedEntry(cast<LLVM::LLVMFuncOp>(
        declares.cloneWithoutRegions(*lowered.getOperation()))));
  }
  for (const std::string &symbol : stored)
    code->lookupSymbol<LLVM::LLVMFuncOp>(symbol).erase();
  if (!compiled.keys.empty())
    if (llvm::Error error = jit.begin(*code, compiled))
      return report(module, std::move(error));
  HostCode quick;
  quick.effort = HostCode::Effort::Quick;
  if (llvm::Error error = jit.begin(*entries, quick))
    return report(module, std::move(error));
  return success();
}

LogicalResult finish(ModuleOp module, SameCode &same) {
  HostJit &jit = *same.jit;
  if (llvm::Error error = jit.finish())
    return report(module, std::move(error));
  jit.warnOfStore(module.getLoc());
  for (auto [candidate, symbol] :
       llvm::zip_equal(same.candidates, same.symbols)) {
    auto address = jit.lookup(symbol);
    if (!address)
      return report(module, address.takeError());
    candidate->code = *address;
  }
  return success();
}
} // namespace

FailureOr<CandidateCode>
baechi::compileCandidates(ModuleOp module,
                          MutableArrayRef<Candidate> candidates,
                          const MeasureOptions &options) {
  llvm::MapVector<StringRef, SameCode> byImplementation;
  for (Candidate &candidate : candidates)
    byImplementation[candidate.implementation].candidates.push_back(&candidate);
  // Generated code first, of which each candidate takes long: these were asked
  // for last.
  for (auto &[implementation, same] : llvm::reverse(byImplementation))
    if (failed(begin(module, same, options)))
      return failure();
  if (options.meanwhile && failed(options.meanwhile()))
    return failure();
  CandidateCode code;
  for (auto &[implementation, same] : byImplementation) {
    if (failed(finish(module, same)))
      return failure();
    code.push_back(std::move(same.jit));
  }
  return code;
}

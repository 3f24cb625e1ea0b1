//===- CudaConvolutions.cpp - What convolutions take on GPUs --------------===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "CudaConvolutions.h"
#include "Baechi/Conversion/HostJit/HostJit.h"
#include "Baechi/Conversion/Kernels/Cuda/CudaKernels.h"
#include "Baechi/Costs/ProfileIndex.h"
#include "Baechi/Dialect/Baechi.h"
#include "Baechi/Runtime/CudaConvolutions.h"
#include "Baechi/Runtime/Machine.h"
#include "Baechi/Runtime/Session.h"
#include "PackedEntry.h"
#include "llvm/ADT/StringSet.h"

using namespace mlir;
using namespace baechi;

namespace {
/// A kernel that lacks rows, and the names of its code.
struct Candidate {
  func::FuncOp kernel;
  CudaConvolutionAttr how;
  CudaConvolutionCall call;
  ProfileRow generated, library;
  std::string generatedCode, libraryCode;
};

int64_t bytesOf(Type type) {
  auto tensor = cast<RankedTensorType>(type);
  return tensor.getNumElements() * (tensor.getElementTypeBitWidth() / 8);
}

std::vector<Candidate> findCandidates(ModuleOp module, const Profile &profile,
                                      const KernelCosts &costs) {
  std::vector<Candidate> candidates;
  llvm::StringSet<> seen;
  ProfileIndex index(profile);
  for (auto kernel : module.getOps<func::FuncOp>()) {
    std::optional<CudaConvolutionCall> call = cudaConvolutionOf(kernel);
    if (!call)
      continue;
    auto how = kernel->getAttrOfType<CudaConvolutionAttr>(
        BaechiDialect::kCudaConvolution);
    ProfileRow library = newRow(kernel, costs, how.getLibraryImplementation());
    if (!seen.insert(library.hash).second ||
        index.find(library.hash, library.kind, library.implementation))
      continue;
    candidates.push_back({kernel, how, *call,
                          newRow(kernel, costs, "generated"),
                          std::move(library), "", ""});
  }
  return candidates;
}

/// Lowers both ways of all candidates to `code`; their names and scratch go to
/// the candidates.
LogicalResult lower(ModuleOp code, MutableArrayRef<Candidate> candidates,
                    int32_t capability) {
  OpBuilder builder = OpBuilder::atBlockEnd(code.getBody());
  for (Candidate &candidate : candidates)
    for (bool library : {false, true}) {
      auto copy = cast<func::FuncOp>(builder.clone(*candidate.kernel));
      std::string name = (candidate.kernel.getSymName() +
                          (library ? "_library" : "_generated"))
                             .str();
      copy.setSymName(name);
      copy->removeAttr(BaechiDialect::kKernelScratch);
      copy->removeAttr(BaechiDialect::kCudaConvolution);
      if (library)
        copy->setAttr(BaechiDialect::kCudaConvolution,
                      CudaConvolutionAttr::get(
                          code.getContext(), candidate.how.getMath(),
                          candidate.how.getWorkspace(), /*always=*/true, {}));
      (library ? candidate.libraryCode : candidate.generatedCode) = name;
    }
  FailureOr<CudaNeeds> needs = cudaNeedsOf(code);
  if (failed(needs))
    return failure();
  annotateCudaNeeds(code, *needs);
  CudaOptions options;
  options.chips = {"sm_" + std::to_string(capability)};
  if (failed(lowerKernelsToCuda(code, options)))
    return failure();
  for (Candidate &candidate : candidates)
    for (auto [name, row] :
         {std::pair(&candidate.generatedCode, &candidate.generated),
          std::pair(&candidate.libraryCode, &candidate.library)}) {
      row->scratchBytes = needs->at(*name).scratchBytes;
      *name = addPackedEntry(
          code.lookupSymbol<LLVM::LLVMFuncOp>(*name + kCudaKernelSuffix.str()));
    }
  return success();
}

using Code = void (*)(void **pointers);

llvm::Expected<runtime::ConvolutionCandidate> describe(HostJit &jit,
                                                       Candidate &from) {
  runtime::ConvolutionCandidate to;
  to.name = from.kernel.getSymName().str();
  to.convolution = from.call.convolution;
  // The engine of an old row is none that must be asked for.
  std::fill(std::begin(to.convolution.engine), std::end(to.convolution.engine),
            0);
  to.convolution.workspace_bytes = from.how.getWorkspace();
  for (Type type : from.kernel.getArgumentTypes())
    to.argumentBytes.push_back(bytesOf(type));
  to.resultBytes = bytesOf(from.kernel.getResultTypes()[0]);
  to.scratchBytes =
      std::max(from.generated.scratchBytes, from.library.scratchBytes);
  to.a = from.call.a;
  to.b = from.call.b;
  for (auto [name, code] : {std::pair(&from.generatedCode, &to.generated),
                            std::pair(&from.libraryCode, &to.library)}) {
    llvm::Expected<void *> address = jit.lookup(*name);
    if (!address)
      return address.takeError();
    *code = reinterpret_cast<Code>(*address);
  }
  return to;
}

void setTime(ProfileRow &row, const runtime::CodeTime &time) {
  row.medianNs = time.medianNs;
  row.spreadNs = time.spreadNs;
  row.samples = time.samples;
}
} // namespace

FailureOr<size_t> baechi::measureConvolutions(ModuleOp module, Profile &profile,
                                              const KernelCosts &costs,
                                              const MeasureOptions &asked,
                                              KernelCosts::Progress progress) {
  std::vector<Candidate> candidates = findCandidates(module, profile, costs);
  if (candidates.empty())
    return 0;
  auto report = [&](llvm::Error error) {
    return emitError(module.getLoc()) << llvm::toString(std::move(error));
  };
  if (auto version = runtime::cudnnVersion(); !version) {
    emitWarning(module.getLoc())
        << "convolutions on GPUs are not measured: cuDNN cannot be loaded: "
        << version.error().message();
    return 0;
  }
  runtime::Expected<runtime::GpuInfo> gpu = runtime::queryGpu();
  if (!gpu)
    return emitError(module.getLoc()) << gpu.error().message();
  OwningOpRef<ModuleOp> code = ModuleOp::create(module.getLoc());
  if (failed(lower(*code, candidates, gpu->capability)))
    return failure();
  HostJitOptions options;
  options.stopped = asked.stopped;
  for (const runtime::AbiSymbol &symbol : runtime::abiSymbols())
    options.symbols[symbol.name] = symbol.address;
  auto jit = HostJit::create(std::move(options));
  if (!jit)
    return report(jit.takeError());
  if (llvm::Error error = (*jit)->add(*code))
    return report(std::move(error));
  std::vector<runtime::ConvolutionCandidate> convolutions;
  for (Candidate &candidate : candidates) {
    auto described = describe(**jit, candidate);
    if (!described)
      return report(described.takeError());
    convolutions.push_back(std::move(*described));
  }
  auto found =
      runtime::searchCudaConvolutions(convolutions, {}, [&](size_t done) {
        progress(done, convolutions.size());
      });
  if (!found)
    return emitError(module.getLoc()) << found.error().message();
  for (auto [candidate, times] : llvm::zip_equal(candidates, *found)) {
    setTime(candidate.generated, times.generated);
    bool isThere = times.library.samples > 0;
    // A row without an engine: the library is not asked again.
    setTime(candidate.library, isThere ? times.library : times.generated);
    candidate.library.scratchBytes = isThere ? times.workspaceBytes : 0;
    if (isThere)
      candidate.library.algorithm.assign(times.engine.begin(),
                                         times.engine.end());
    addRow(profile, std::move(candidate.generated));
    addRow(profile, std::move(candidate.library));
  }
  return 2 * candidates.size();
}

//===- HostCosts.cpp - Times of kernels' host code -*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Baechi/Analysis/KernelHash.h"
#include "Baechi/Analysis/Program.h"
#include "Baechi/Conversion/HostJit/GemmLibraries.h"
#include "Baechi/Conversion/HostJit/HostJit.h"
#include "Baechi/Conversion/Kernels/Host/HostKernels.h"
#include "Baechi/Costs/Measure/KernelCosts.h"
#include "Baechi/Dialect/Baechi.h"
#include "Baechi/Runtime/Denormals.h"
#include "CanMeasure.h"
#include "Operands.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/SetVector.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/Config/llvm-config.h"
#include "llvm/Support/thread.h"
#include <chrono>
#include <limits>
#include <sched.h>

using namespace mlir;
using namespace baechi;

namespace {
using Clock = std::chrono::steady_clock;

constexpr const char *kKind = "host";
/// The clock's own cost must not show.
constexpr double kNsPerSample = 20000;
/// Every row is measured so many times, all others in between: a processor's
/// clock and its neighbours change from one second to the next, and rows are
/// compared with each other.
constexpr size_t kRounds = 3;
/// An implementation that is so many times slower than another one of its
/// kernel is not measured again.
constexpr double kHopeless = 1.5;

/// One row to be: a kernel with an implementation, and its code.
struct Candidate {
  func::FuncOp kernel;
  std::string hash, implementation;
  /// The name of its code, called with an array of pointers.
  std::string symbol;
  int64_t scratchBytes = 0;
  void *code = nullptr;
  /// Nanoseconds a call.
  std::vector<double> samples;
};

double nsSince(Clock::time_point start) {
  return std::chrono::duration<double, std::nano>(Clock::now() - start).count();
}

/// Binds the calling thread to the last processor that it may run on; the first
/// ones serve most interrupts.
void bindThread() {
  cpu_set_t allowed;
  if (sched_getaffinity(0, sizeof(allowed), &allowed) != 0)
    return;
  for (int cpu = CPU_SETSIZE - 1; cpu >= 0; --cpu)
    if (CPU_ISSET(cpu, &allowed)) {
      CPU_ZERO(&allowed);
      CPU_SET(cpu, &allowed);
      sched_setaffinity(0, sizeof(allowed), &allowed);
      return;
    }
}

/// Adds `void NAME_packed(ptr pointers)`, which calls a kernel's code on an
/// array of pointers.
std::string addPackedEntry(LLVM::LLVMFuncOp code) {
  OpBuilder builder(code);
  Location loc = code.getLoc();
  auto pointer = LLVM::LLVMPointerType::get(builder.getContext());
  auto type = LLVM::LLVMFunctionType::get(
      LLVM::LLVMVoidType::get(builder.getContext()), {pointer});
  std::string name = (code.getSymName() + "_packed").str();
  auto entry = LLVM::LLVMFuncOp::create(builder, loc, name, type);
  Block *body = entry.addEntryBlock(builder);
  builder.setInsertionPointToStart(body);
  SmallVector<Value> arguments;
  for (int32_t index : llvm::seq<int32_t>(code.getNumArguments())) {
    Value slot = LLVM::GEPOp::create(builder, loc, pointer, pointer,
                                     body->getArgument(0),
                                     ArrayRef<LLVM::GEPArg>{index});
    arguments.push_back(LLVM::LoadOp::create(builder, loc, pointer, slot));
  }
  LLVM::CallOp::create(builder, loc, code, arguments);
  LLVM::ReturnOp::create(builder, loc, ValueRange());
  return name;
}

void warnUnmeasured(func::FuncOp kernel, StringRef why) {
  emitWarning(kernel.getLoc())
      << "kernel '" << kernel.getSymName() << "' is not measured: " << why
      << "; its cost will be an estimate";
}

SmallVector<Candidate> findCandidates(ModuleOp module, const Profile &profile,
                                      bool warn) {
  SmallVector<Candidate> candidates;
  llvm::StringSet<> seen;
  llvm::SmallDenseMap<const GemmLibrary *, bool> libraries;
  auto isThere = [&](const GemmLibrary &library) {
    auto [found, isNew] = libraries.try_emplace(&library);
    if (isNew) {
      auto loaded = loadGemmLibrary(library);
      found->second = static_cast<bool>(loaded);
      if (!loaded)
        emitWarning(module.getLoc()) << llvm::toString(loaded.takeError());
    }
    return found->second;
  };
  for (auto kernel : module.getOps<func::FuncOp>()) {
    if (!kernel->hasAttr(BaechiDialect::kKernel) || isHostCall(kernel))
      continue;
    std::string hash = kernelHash(kernel);
    if (!seen.insert(hash).second)
      continue;
    SmallVector<StringRef> missing = llvm::filter_to_vector(
        hostImplementations(kernel), [&](StringRef implementation) {
          return !profile.find(hash, kKind, implementation);
        });
    if (missing.empty())
      continue;
    if (std::string why = whyNotMeasured(kernel); !why.empty()) {
      if (warn)
        warnUnmeasured(kernel, why);
      continue;
    }
    for (StringRef implementation : missing) {
      const GemmLibrary *library = findGemmLibrary(implementation);
      if (!library || isThere(*library)) {
        Candidate &candidate = candidates.emplace_back();
        candidate.kernel = kernel;
        candidate.hash = hash;
        candidate.implementation = implementation.str();
      }
    }
  }
  return candidates;
}

/// Compiles all candidates at once.
FailureOr<std::unique_ptr<HostJit>>
compile(ModuleOp module, MutableArrayRef<Candidate> candidates,
        const MeasureOptions &asked) {
  OwningOpRef<ModuleOp> code = ModuleOp::create(module.getLoc());
  OpBuilder builder = OpBuilder::atBlockEnd(code->getBody());
  for (Candidate &candidate : candidates) {
    auto copy = cast<func::FuncOp>(builder.clone(*candidate.kernel));
    candidate.symbol =
        (candidate.kernel.getSymName() + "_" + candidate.implementation).str();
    copy.setSymName(candidate.symbol);
    copy->removeAttr(BaechiDialect::kKernelScratch);
    copy->setAttr(BaechiDialect::kImplementation,
                  builder.getStringAttr(candidate.implementation));
  }
  LoweredKernels own;
  if (failed((asked.lowered ? *asked.lowered : own).lower(*code)))
    return failure();
  for (Candidate &candidate : candidates) {
    auto lowered =
        code->lookupSymbol<LLVM::LLVMFuncOp>(hostSymbol(candidate.symbol));
    candidate.scratchBytes =
        lowered->getAttrOfType<IntegerAttr>(BaechiDialect::kKernelScratch)
            .getInt();
    candidate.symbol = addPackedEntry(lowered);
  }
  auto report = [&](llvm::Error error) {
    return emitError(module.getLoc()) << llvm::toString(std::move(error));
  };
  HostJitOptions options;
  options.stopped = asked.stopped;
  auto jit = HostJit::create(std::move(options));
  if (!jit)
    return report(jit.takeError());
  if (auto error = (*jit)->add(*code))
    return report(std::move(error));
  for (Candidate &candidate : candidates) {
    auto address = (*jit)->lookup(candidate.symbol);
    if (!address)
      return report(address.takeError());
    candidate.code = *address;
  }
  return std::move(*jit);
}

/// The quantile of sorted samples, the nearer one.
double quantile(ArrayRef<double> sorted, double share) {
  return sorted[static_cast<size_t>(share * (sorted.size() - 1) + 0.5)];
}

/// Adds one round's samples; false when there is no memory for the operands.
bool sample(Candidate &candidate, const MeasureOptions &options, bool hurry) {
  Operands operands(candidate.kernel, candidate.scratchBytes);
  if (!operands.allocated())
    return false;
  auto *code = reinterpret_cast<void (*)(void **)>(candidate.code);
  size_t set = 0;
  auto call = [&] {
    code(operands.set(set));
    set = (set + 1) % operands.sets();
  };
  call();
  Clock::time_point start = Clock::now();
  call();
  double once = std::max(nsSince(start), 1.0);
  size_t calls = std::clamp(kNsPerSample / once, 1.0, 1000.0);

  size_t fewest = llvm::divideCeil(options.samplesPerRow, kRounds);
  double spentNs = 0;
  size_t samples = 0;
  auto enough = [&] {
    if (samples == 0)
      return false;
    return hurry || spentNs > options.mostSecondsPerRow / kRounds * 1e9 ||
           (spentNs > options.secondsPerRow / kRounds * 1e9 &&
            samples >= fewest);
  };
  for (; !enough(); ++samples) {
    start = Clock::now();
    for (size_t i = 0; i < calls; ++i)
      call();
    double ns = nsSince(start);
    spentNs += ns;
    candidate.samples.push_back(ns / calls);
  }
  return true;
}

double fastestSample(const Candidate &candidate) {
  return candidate.samples.empty() ? std::numeric_limits<double>::infinity()
                                   : *llvm::min_element(candidate.samples);
}

/// \p fastest: by kernel hash, the fastest sample of any implementation.
void noteFastest(const Candidate &candidate, llvm::StringMap<double> &fastest) {
  auto [found, isNew] =
      fastest.try_emplace(candidate.hash, fastestSample(candidate));
  found->second = std::min(found->second, fastestSample(candidate));
}

bool isHopeless(const Candidate &candidate,
                const llvm::StringMap<double> &fastest) {
  return !candidate.samples.empty() &&
         fastestSample(candidate) > kHopeless * fastest.lookup(candidate.hash);
}

ProfileRow rowOf(Candidate &candidate) {
  std::vector<double> &samples = candidate.samples;
  llvm::sort(samples);
  ProfileRow row =
      newRow(candidate.kernel, hostCosts(), candidate.implementation);
  row.medianNs = std::llround(quantile(samples, 0.5));
  row.spreadNs =
      std::llround((quantile(samples, 0.75) - quantile(samples, 0.25)) / 2);
  row.samples = samples.size();
  row.scratchBytes = candidate.scratchBytes;
  return row;
}

/// Without rows.
Profile profileOfThisHost() {
  Profile own;
  own.target = HostJit::hostTarget();
  own.compiler = ("kernels " + llvm::Twine(kHostCodeVersion) + ", LLVM " +
                  LLVM_VERSION_STRING)
                     .str();
  return own;
}

/// Makes this host the profile's target, and this the compiler: times of other
/// ones are not their own.
void dropForeignRows(ModuleOp module, Profile &profile) {
  Profile own = profileOfThisHost();
  if (!profile.target.empty() && !profile.isComparable(own)) {
    auto describe = [](const Profile &profile) {
      return "'" + profile.target + "' by '" + profile.compiler + "'";
    };
    emitWarning(module.getLoc())
        << "the profile was measured on " << describe(profile)
        << " but this host is " << describe(own) << "; its rows of kind '"
        << kKind << "' are measured again";
    llvm::erase_if(profile.rows,
                   [](const ProfileRow &row) { return row.kind == kKind; });
  }
  profile.target = std::move(own.target);
  profile.compiler = std::move(own.compiler);
}
class HostCosts final : public KernelCosts {
public:
  StringRef kind() const override { return kKind; }
  StringRef phase() const override { return "measuring kernels"; }
  llvm::Error adopt(ModuleOp module, Profile &profile) const override {
    dropForeignRows(module, profile);
    return llvm::Error::success();
  }
  std::string implementationOf(func::FuncOp kernel) const override {
    if (auto chosen =
            kernel->getAttrOfType<StringAttr>(BaechiDialect::kImplementation))
      return chosen.str();
    return hostImplementations(kernel).front().str();
  }
  FailureOr<size_t> measure(ModuleOp module, Profile &profile,
                            const MeasureOptions &options,
                            Progress progress) const override;
};
} // namespace

void baechi::noteScratch(const Profile &profile, LoweredKernels &kernels) {
  if (!profile.isComparable(profileOfThisHost()))
    return;
  for (const ProfileRow &row : profile.rows)
    if (row.kind == kKind)
      kernels.noteScratch(row.hash, row.implementation, row.scratchBytes);
}

const KernelCosts &baechi::hostCosts() {
  static const HostCosts costs;
  return costs;
}

FailureOr<size_t> HostCosts::measure(ModuleOp module, Profile &profile,
                                     const MeasureOptions &options,
                                     Progress progress) const {
  SmallVector<Candidate> candidates =
      findCandidates(module, profile, options.warnOfUnmeasured);
  if (candidates.empty())
    return 0;
  auto jit = compile(module, candidates, options);
  if (failed(jit))
    return failure();
  llvm::SetVector<func::FuncOp> withoutMemory;
  bool stopped = false;
  // LLVM's: one that cannot be started is an error of LLVM's, as elsewhere.
  llvm::thread([&] {
    bindThread();
    runtime::flushDenormals();
    Clock::time_point start = Clock::now();
    llvm::StringMap<double> fastest;
    for (size_t round = 0; round < kRounds; ++round)
      for (auto [index, candidate] : llvm::enumerate(candidates)) {
        progress((round * candidates.size() + index) / kRounds,
                 candidates.size());
        stopped |= options.stopped && options.stopped();
        if (stopped || isHopeless(candidate, fastest))
          continue;
        bool hurry = nsSince(start) > options.secondsInAll * 1e9;
        if (!withoutMemory.contains(candidate.kernel) &&
            !sample(candidate, options, hurry))
          withoutMemory.insert(candidate.kernel);
        noteFastest(candidate, fastest);
      }
    if (stopped)
      return;
    for (Candidate &candidate : candidates)
      if (!withoutMemory.contains(candidate.kernel))
        profile.rows.push_back(rowOf(candidate));
    progress(candidates.size(), candidates.size());
  }).join();
  if (stopped)
    return emitError(module.getLoc()) << "stopped";
  if (options.warnOfUnmeasured)
    for (func::FuncOp kernel : withoutMemory)
      warnUnmeasured(kernel, "there is no memory for its operands");
  return candidates.size();
}

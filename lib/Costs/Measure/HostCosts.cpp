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
#include "Baechi/Costs/Measure/StepEstimate.h"
#include "Baechi/Costs/ProfileIndex.h"
#include "Baechi/Dialect/Baechi.h"
#include "Baechi/Runtime/Denormals.h"
#include "CanMeasure.h"
#include "Candidates.h"
#include "Operands.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/SetVector.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/Config/llvm-config.h"
#include "llvm/Support/thread.h"
#include <cmath>
#include <optional>
#include <sched.h>

using namespace mlir;
using namespace baechi;

namespace {
constexpr const char *kKind = "host";

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

void warnUnmeasured(func::FuncOp kernel, StringRef why) {
  emitWarning(kernel.getLoc())
      << "kernel '" << kernel.getSymName() << "' is not measured: " << why
      << "; its cost will be an estimate";
}

/// The slowest of several last: little time is spent on those that are hopeless
/// beside others.
SmallVector<Candidate> findCandidates(ModuleOp module, const Profile &profile,
                                      const MeasureOptions &options) {
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
  ProfileIndex index(profile);
  for (auto kernel : module.getOps<func::FuncOp>()) {
    if (!kernel->hasAttr(BaechiDialect::kKernel) || isHostCall(kernel))
      continue;
    std::string hash = kernelHash(kernel);
    if (!seen.insert(hash).second)
      continue;
    SmallVector<StringRef> known = hostImplementations(kernel);
    // One that names its code has no choice left.
    if (options.choicesOnly &&
        (known.size() == 1 || kernel->hasAttr(BaechiDialect::kImplementation)))
      continue;
    if (options.keepsCode && llvm::any_of(known, [&](StringRef implementation) {
          const ProfileRow *row = index.find(hash, kKind, implementation);
          return row && row->stepNs >= 0 && !row->stepDisturbed;
        }))
      continue;
    SmallVector<StringRef> missing = llvm::filter_to_vector(
        llvm::reverse(known), [&](StringRef implementation) {
          const ProfileRow *row = index.find(hash, kKind, implementation);
          return !row || row->disturbed;
        });
    if (missing.empty())
      continue;
    if (std::string why = whyNotMeasured(kernel); !why.empty()) {
      if (options.warnOfUnmeasured)
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

/// The quantile of sorted samples, the nearer one.
double quantile(ArrayRef<double> sorted, double share) {
  return sorted[std::lround(share * (sorted.size() - 1))];
}

/// What the measuring may begin with, and what matters most in a step.
SmallVector<TimedCode> timedCodes(ModuleOp module, const Profile &profile,
                                  ArrayRef<Candidate> candidates,
                                  RoundOptions &rounds) {
  StepEstimate estimate(module, kKind, profile);
  rounds.estimatedStepNs = estimate.stepNs();
  SmallVector<TimedCode> codes;
  size_t computation = 0;
  for (auto [number, candidate] : llvm::enumerate(candidates)) {
    computation += number > 0 && candidates[number - 1].hash != candidate.hash;
    StepEstimate::Use use = estimate.of(candidate.hash);
    codes.push_back({computation, use.ns, use.ns * double(use.calls)});
  }
  return codes;
}

ProfileRow rowOf(const Candidate &candidate, TimedCode &code) {
  std::vector<double> &samples = code.samples;
  llvm::sort(samples);
  ProfileRow row =
      newRow(candidate.kernel, hostCosts(), candidate.implementation);
  row.medianNs = std::llround(quantile(samples, 0.5));
  row.spreadNs =
      std::llround((quantile(samples, 0.75) - quantile(samples, 0.25)) / 2);
  row.samples = samples.size();
  row.scratchBytes = candidate.scratchBytes;
  row.disturbed = code.disturbed;
  return row;
}

/// The version of a library that a profile was measured with; empty: none.
std::string versionIn(const Profile &profile, StringRef title) {
  SmallVector<StringRef> parts;
  StringRef(profile.compiler).split(parts, ", ");
  for (StringRef part : parts)
    if (part.consume_front(title) && part.consume_front(" "))
      return part.str();
  return "";
}

/// Without rows. A library that cannot be loaded is the one of \p kept: that it
/// is missing is an error where it is called, and no reason to measure anew.
Profile profileOfThisHost(const Profile &kept) {
  Profile own;
  own.target = HostJit::hostTarget();
  own.compiler = ("kernels " + llvm::Twine(kHostCodeVersion) + ", LLVM " +
                  LLVM_VERSION_STRING)
                     .str();
  for (const GemmLibrary &library : gemmLibraries()) {
    std::string version = gemmLibraryVersion(library);
    if (version.empty())
      version = versionIn(kept, library.title);
    if (!version.empty())
      own.compiler += (", " + library.title + " " + version).str();
  }
  return own;
}

/// Makes this host the profile's target, and this the compiler: times of other
/// ones are not their own.
void dropForeignRows(ModuleOp module, Profile &profile) {
  Profile own = profileOfThisHost(profile);
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
    profile.choices.clear();
  }
  if (profile.target != own.target) {
    profile.peaks.reset();
    profile.hosts.clear();
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
  if (!profile.isComparable(profileOfThisHost(profile)))
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
  SmallVector<Candidate> candidates = findCandidates(module, profile, options);
  if (candidates.empty())
    return 0;
  RoundOptions rounds = options.rounds;
  SmallVector<TimedCode> codes =
      timedCodes(module, profile, candidates, rounds);
  // What the budget will not reach is not compiled either.
  SmallVector<size_t> chosen = worthTiming(codes, rounds);
  if (chosen.empty())
    return 0;
  llvm::sort(chosen);
  candidates = llvm::map_to_vector(
      chosen, [&](size_t number) { return std::move(candidates[number]); });
  codes = llvm::map_to_vector(
      chosen, [&](size_t number) { return std::move(codes[number]); });
  auto code = compileCandidates(module, candidates, options);
  if (failed(code))
    return failure();
  std::optional<CompileThreads::Room> room;
  if (options.workers)
    room.emplace(*options.workers);
  bool finished = true;
  // LLVM's: one that cannot be started is an error of LLVM's, as elsewhere.
  llvm::thread([&] {
    bindThread();
    runtime::flushDenormals();
    std::optional<Operands> operands;
    size_t set = 0;
    auto prepare = [&](size_t number) -> std::function<void()> {
      const Candidate &candidate = candidates[number];
      operands.reset();
      operands.emplace(candidate.kernel, candidate.scratchBytes);
      if (!operands->allocated())
        return {};
      set = 0;
      auto *code = reinterpret_cast<void (*)(void **)>(candidate.code);
      return [&operands, &set, code] {
        code(operands->set(set));
        set = (set + 1) % operands->sets();
      };
    };
    finished = timeInRounds(codes, rounds, Clocks::ofThisThread(), prepare,
                            [&](size_t done) {
                              progress(done, candidates.size());
                              return !options.stopped || !options.stopped();
                            });
  }).join();
  room.reset();
  if (!finished)
    return emitError(module.getLoc()) << "stopped";
  size_t measured = 0;
  llvm::SetVector<func::FuncOp> withoutMemory;
  for (auto [candidate, code] : llvm::zip_equal(candidates, codes))
    if (code.impossible) {
      withoutMemory.insert(candidate.kernel);
    } else if (!code.samples.empty()) {
      addRow(profile, rowOf(candidate, code));
      ++measured;
    }
  progress(candidates.size(), candidates.size());
  if (options.warnOfUnmeasured)
    for (func::FuncOp kernel : withoutMemory)
      warnUnmeasured(kernel, "there is no memory for its operands");
  return measured;
}

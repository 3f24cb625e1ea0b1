//===- StepCosts.cpp - What kernels take within a step -*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Baechi/Costs/Measure/StepCosts.h"
#include "Baechi/Analysis/KernelHash.h"
#include "Baechi/Analysis/Program.h"
#include "Baechi/Costs/Measure/KernelCosts.h"
#include "Baechi/Costs/ProfileIndex.h"
#include "Baechi/Dialect/Baechi.h"
#include "llvm/ADT/StringMap.h"
#include <algorithm>
#include <cmath>

using namespace mlir;
using namespace baechi;

namespace {
/// The first step finds cold caches and untouched pages.
constexpr size_t kWarmUps = 1;
constexpr size_t kMostSteps = 15;
/// Have a median.
constexpr size_t kEnoughSteps = 3;
/// Its thread is woken for a step, and wakes who waits for it.
constexpr double kIdleNs = 5e5;

ProfileRow *findRow(Profile &profile, StringRef hash, StringRef kind,
                    StringRef implementation) {
  return const_cast<ProfileRow *>(profile.find(hash, kind, implementation));
}

using StepRunner =
    llvm::function_ref<llvm::Expected<const runtime::Timeline *>()>;

/// The times of each operator of one device, over steps.
struct Samples {
  std::vector<std::vector<int64_t>> operators;
  bool disturbed = false;

  /// \p cpuNs: what the step computed. Operators cannot have computed more, and
  /// what takes longer is interrupted more often.
  void add(const runtime::DeviceRecord &record, double cpuNs) {
    double all = 0;
    for (const auto &interval : record.operators)
      all += interval.durationNs();
    double share = all > cpuNs ? cpuNs / all : 1;
    for (auto [samples, interval] :
         llvm::zip_equal(operators, record.operators))
      samples.push_back(std::llround(interval.durationNs() * share));
  }
};

llvm::Expected<Samples>
runSteps(const runtime::Program &single, StepRunner runStep,
         const StepSampling &sampling,
         llvm::function_ref<bool(size_t done, size_t total)> progress) {
  // What was disturbed is better than nothing, less what was somebody else's.
  Samples good, bad;
  good.operators.resize(single.devices.front().operators.size());
  bad.operators.resize(good.operators.size());
  bad.disturbed = true;
  double spentNs = 0;
  size_t counted = 0, disturbed = 0;
  for (size_t step = 0; step < kWarmUps + kMostSteps; ++step) {
    bool isPatient = counted < sampling.fewest && disturbed < sampling.fewest;
    if (counted + disturbed >= sampling.fewest && !isPatient &&
        spentNs > sampling.seconds * 1e9)
      break;
    if ((counted >= kEnoughSteps || disturbed >= 2 * kEnoughSteps) &&
        spentNs > sampling.enoughSeconds * 1e9)
      break;
    if (!progress(step, kWarmUps + kMostSteps))
      return llvm::createStringError("stopped");
    double wall = sampling.clocks.wall(), cpu = sampling.clocks.cpu();
    llvm::Expected<const runtime::Timeline *> timeline = runStep();
    if (!timeline)
      return timeline.takeError();
    cpu = sampling.clocks.cpu() - cpu;
    wall = sampling.clocks.wall() - wall;
    if (step < kWarmUps)
      continue;
    spentNs += (*timeline)->wallNs;
    bool isBad = isDisturbed(wall, cpu, kIdleNs);
    (isBad ? bad : good).add((*timeline)->devices.front(), isBad ? cpu : wall);
    ++(isBad ? disturbed : counted);
  }
  return counted > 0 ? good : bad;
}
} // namespace

bool baechi::lacksStepCosts(ModuleOp module, StringRef kind,
                            const Profile &profile) {
  // Steps with calls of a host program do not run here.
  if (llvm::any_of(module.getOps<func::FuncOp>(), isHostCall))
    return false;
  const KernelCosts &costs = kernelCostsOf(kind);
  ProfileIndex index(profile);
  for (auto kernel : module.getOps<func::FuncOp>()) {
    if (!kernel->hasAttr(BaechiDialect::kKernel))
      continue;
    const ProfileRow *row =
        index.find(kernelHash(kernel), kind, costs.implementationOf(kernel));
    if (!row || row->stepNs < 0 || row->stepDisturbed)
      return true;
  }
  return false;
}

llvm::Error baechi::measureStepCosts(
    const runtime::Program &single, StepRunner runStep, ModuleOp module,
    Profile &profile, const StepSampling &sampling,
    llvm::function_ref<bool(size_t done, size_t total)> progress) {
  llvm::Expected<Samples> samples =
      runSteps(single, runStep, sampling, progress);
  if (!samples)
    return samples.takeError();
  struct Sum {
    double ns = 0;
    int64_t operators = 0;
  };
  llvm::StringMap<Sum> sums;
  const KernelCosts &costs = kernelCostsOf(single.devices.front().kind);
  const auto &operators = single.devices.front().operators;
  for (auto [op, sample] : llvm::zip_equal(operators, samples->operators)) {
    auto middle = sample.begin() + (sample.size() - 1) / 2;
    std::nth_element(sample.begin(), middle, sample.end());
    Sum &sum = sums[op.kernel];
    sum.ns += *middle;
    ++sum.operators;
  }
  for (auto kernel : module.getOps<func::FuncOp>()) {
    auto sum = sums.find(kernel.getSymName());
    if (sum == sums.end() || !kernel->hasAttr(BaechiDialect::kKernel))
      continue;
    std::string hash = kernelHash(kernel);
    std::string implementation = costs.implementationOf(kernel);
    ProfileRow *row = findRow(profile, hash, costs.kind(), implementation);
    int64_t ns = std::llround(sum->second.ns / sum->second.operators);
    if (!row) {
      profile.rows.push_back(newRow(kernel, costs, implementation));
      row = &profile.rows.back();
      row->disturbed = true;
      if (auto scratch =
              kernel->getAttrOfType<IntegerAttr>(BaechiDialect::kKernelScratch))
        row->scratchBytes = scratch.getInt();
    }
    // What has no undisturbed time of its own is better off with this one.
    if (row->disturbed) {
      row->medianNs = ns;
      row->samples = samples->operators.front().size();
      row->disturbed = samples->disturbed;
    }
    if (row->stepNs < 0 || row->stepDisturbed) {
      row->stepNs = ns;
      row->stepDisturbed = samples->disturbed;
    }
  }
  return llvm::Error::success();
}

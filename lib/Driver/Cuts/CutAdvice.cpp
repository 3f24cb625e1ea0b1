//===- CutAdvice.cpp - The cut that makes a step fit ----------------------===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Where a step does not fit, a refusal says by which options it does, or which
/// of those that were tried leave the least to lack. What is said is what these
/// options ask for, formed and planned once more: cuts that nobody has asked
/// for may differ from it in what no option says.
///
//===----------------------------------------------------------------------===//

#include "Baechi/Driver/Cuts/CutAdvice.h"
#include "Baechi/Analysis/PlacementProblem.h"
#include "Baechi/Placement/Io/Files.h"
#include "Baechi/Placement/Model/Pool.h"
#include "llvm/ADT/STLExtras.h"

using namespace mlir;
using namespace baechi;

/// So often the memory in which a step may fit is doubled, until it does, and
/// what is between that and one in which it does not is halved.
static constexpr int kDoublings = 4, kHalvings = 6;

/// The step as the options ask that are \p way; null: there is none.
static std::unique_ptr<HostCompiler> formAsked(const ModelForms &forms,
                                               const SplitChoice &first,
                                               const SplitChoice &way) {
  SplitChoice choice = first;
  if (way.chained) {
    CompileOptions options = forms.options();
    options.splits = "micro:" + std::to_string(way.pieces);
    llvm::Expected<SplitChoice> asked =
        splitChoiceOf(options, placement::numComputing(forms.machine()));
    if (!asked) {
      llvm::consumeError(asked.takeError());
      return nullptr;
    }
    choice = std::move(*asked);
  }
  choice.asked = way.asked;
  FailureOr<std::unique_ptr<HostCompiler>> formed = forms.form(choice);
  return succeeded(formed) ? std::move(*formed) : nullptr;
}

/// The least memory of the one device that computes, of those that are tried
/// from \p low on, in which a plan of \p step fits; 0: in none.
static int64_t memoryFor(const ModelForms &forms, HostCompiler &step,
                         int64_t low, int64_t high) {
  placement::Machine machine = forms.machine();
  auto &device = *llvm::find_if(
      machine.devices, [](auto &each) { return !placement::isPool(each); });
  auto fits = [&](int64_t bytes) {
    device.memory = bytes;
    return !forms.heard().isStopped() &&
           succeeded(forms.fitsFitted(step, machine));
  };
  high = std::max(low, high);
  for (int doubling = 0; !fits(high); ++doubling) {
    if (doubling == kDoublings)
      return 0;
    low = high;
    high *= 2;
  }
  for (int halving = 0; halving < kHalvings && high - low > 64; ++halving)
    (fits(low + (high - low) / 2) ? high : low) = low + (high - low) / 2;
  return high;
}

/// Room for all that a step reads and makes.
static int64_t bytesOfAll(ModuleOp formed) {
  FailureOr<StepGraph> graph = buildStepGraph(formed);
  int64_t bytes = 0;
  if (succeeded(graph))
    for (const placement::Operator &op : graph->graph.ops) {
      bytes += op.resident;
      for (const placement::Output &output : op.outputs)
        bytes += output.bytes;
    }
  return bytes;
}

namespace {
/// A machine as it is asked for, with a pool.
struct MachineWithPool {
  std::string spec;
  placement::Machine machine;
};
} // namespace

/// The machine with a pool that has room for \p step beside its one host
/// device; nullopt: it has one, or is of a file, to which none is added so.
static std::optional<MachineWithPool> withPool(const ModelForms &forms,
                                               HostCompiler &step) {
  const placement::Machine &target = forms.machine();
  if (target.devices.size() != 1 || target.devices.front().kind != "host")
    return std::nullopt;
  constexpr int64_t kUnit = 1 << 10;
  uint64_t units = llvm::divideCeil(bytesOfAll(step.module()), kUnit);
  MachineWithPool with{forms.options().machine + "+pool:" +
                           std::to_string(llvm::PowerOf2Ceil(units)) + "KiB",
                       {}};
  if (!placement::readMachineSpec(with.spec, with.machine).empty() ||
      with.machine.devices.front().memory != target.devices.front().memory)
    return std::nullopt;
  with.machine.runtime = target.runtime;
  return with;
}

std::optional<std::string> baechi::advisePool(const ModelForms &forms,
                                              HostCompiler &step) {
  std::optional<std::string> advice;
  (void)forms.quietly([&] {
    std::optional<MachineWithPool> with = withPool(forms, step);
    if (!with || forms.heard().isStopped() ||
        failed(forms.fitsFitted(step, with->machine)))
      return failure();
    advice = std::move(with->spec);
    return success();
  });
  return advice;
}

/// Whether a pool cannot make \p step fit, as one operator alone needs more.
static bool needsMoreThanPool(const ModelForms &forms, HostCompiler &step) {
  std::optional<MachineWithPool> with = withPool(forms, step);
  std::optional<Neediest> most;
  if (with)
    most = neediestOf(step.module(), with->machine);
  return most && !most->fits();
}

std::optional<CutAdvice> baechi::adviseLeanest(const ModelForms &forms,
                                               HostCompiler &whole,
                                               const FittingCuts &cuts,
                                               const SplitChoice &first) {
  const std::optional<FittingCuts::Unfit> &leanest = cuts.leanest();
  if (!leanest)
    return std::nullopt;
  CutAdvice advice{leanest->way, false, leanest->most, 0, ""};
  if (placement::numComputing(forms.machine()) > 1)
    return advice;
  (void)forms.quietly([&] {
    std::unique_ptr<HostCompiler> cut = formAsked(forms, first, advice.way);
    if (cut && needsMoreThanPool(forms, whole))
      advice.machine = advisePool(forms, *cut).value_or("");
    if (cut)
      advice.bytes = memoryFor(
          forms, *cut, std::max(leanest->most.bytes, leanest->most.memory),
          cuts.neediest()->bytes);
    return success(cut != nullptr);
  });
  return advice;
}

std::optional<CutAdvice> baechi::adviseCut(const ModelForms &forms,
                                           HostCompiler &whole,
                                           const SplitChoice &first) {
  FittingCuts cuts(forms, whole, first);
  if (!cuts.neediest())
    return std::nullopt;
  while (std::optional<FittingCut> cut = cuts.nextTried()) {
    // No option asks for it.
    if (cut->way.ordered)
      continue;
    cut->compiler.reset();
    if (succeeded(forms.quietly([&] {
          std::unique_ptr<HostCompiler> asked =
              formAsked(forms, first, cut->way);
          return success(asked &&
                         succeeded(forms.fitsFitted(*asked, forms.machine())));
        })))
      return CutAdvice{cut->way, /*fits=*/true, {}, 0, ""};
  }
  return adviseLeanest(forms, whole, cuts, first);
}

std::unique_ptr<HostCompiler>
baechi::fewestMicroBatches(const ModelForms &forms, unsigned above,
                           unsigned &pieces) {
  std::unique_ptr<HostCompiler> found;
  std::optional<int64_t> before;
  bool isLast = false;
  for (unsigned count : {2, 4, 8, 16}) {
    if (count <= above || forms.heard().isStopped())
      continue;
    SplitChoice choice{.pieces = count,
                       .reductions = true,
                       .chained = true,
                       .asked = forms.options().split};
    // Where the batch is too small, or a cut that is asked for has another
    // number of pieces, these are not.
    (void)forms.quietly([&] {
      std::optional<int64_t> least = forms.leastBytesOnHost(choice);
      bool isTooMuch =
          least && *least > placement::computingBytes(forms.machine());
      // What needs most is cut no further, nor is it in more pieces.
      isLast = isTooMuch && before && *least >= *before;
      before = least;
      if (isTooMuch)
        return failure();
      FailureOr<std::unique_ptr<HostCompiler>> formed = forms.form(choice);
      if (succeeded(formed) && forms.fits(**formed))
        found = std::move(*formed);
      return success(found != nullptr);
    });
    if (found)
      pieces = count;
    if (found || isLast)
      break;
  }
  return found;
}

//===- OtherCuts.cpp - Other cuts than those that were formed -------------===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Where tensors are sent between devices, one piece a device may lose to fewer
/// pieces, whose sums are less to exchange, and both to micro-batches, which
/// exchange no sums at all: pipelines (Huang et al., "GPipe", NeurIPS 2019).
/// How much of what is sent overlaps with what is computed only a placement
/// shows, so that pieces are proposed as if less were sent, too; and as if more
/// were: whole layers, too, run at once on several devices, such as the time
/// steps of one recurrent layer beside those of the next, so that pieces save
/// less than they seem to.
/// Where they share it, features of layers are cut where an estimate of single
/// operations prefers them to the batch.
///
//===----------------------------------------------------------------------===//

#include "Baechi/Driver/Cuts/OtherCuts.h"
#include "Baechi/Placement/Model/Pool.h"
#include <set>

using namespace mlir;
using namespace baechi;

static bool sharesMemory(const placement::Machine &machine) {
  return llvm::any_of(machine.links,
                      [](auto &link) { return link && link->lends; });
}

/// Where what is sent overlaps with other branches and with gradients that
/// nothing waits for.
static constexpr unsigned kOverlapped = 40;
/// Where what is whole would run beside other operators.
static constexpr unsigned kSparing = 300;
/// Of the rest in fewer pieces: all that can be cut, but what saves nothing.
static constexpr unsigned kAllOfRest = 1;

/// A step of more operations, over all micro-batches, is not formed for a
/// comparison: compiling would take several times as long.
static constexpr size_t kMostOperations = 100'000;

/// The roofline may be wrong by this part of what it predicts.
static constexpr double kSurely = 0.05;

std::optional<int64_t> baechi::predictQuietly(const ModelForms &forms,
                                              HostCompiler &compiler) {
  FailureOr<int64_t> ns = failure();
  CompileOptions options = forms.options();
  options.budget = budgetOfComparing(options.budget);
  (void)forms.quietly([&] {
    ns = compiler.predict(forms.machine(), options);
    return LogicalResult(ns);
  });
  return succeeded(ns) ? std::optional(*ns) : std::nullopt;
}

/// How many operations are in pieces.
static int64_t numCut(const SplitReport &report) {
  int64_t count = 0;
  for (const SplitReport::Class &cut : report.classes)
    count += cut.operations;
  return count;
}

/// The largest class alone where \p choice takes other classes, by an estimate:
/// both are compiled unless one is clearly worse.
static void addLargestCut(const ModelForms &forms, SplitChoice choice,
                          std::vector<ModelForms::Compiler> &compilers) {
  auto features = llvm::find_if(compilers, [](const auto &compiler) {
    return !compiler->splits().isLargestFirst;
  });
  if (features == compilers.end() || choice.always)
    return;
  Phase phase(forms.heard(), "comparing cuts");
  choice.largestFirst = true;
  FailureOr<std::unique_ptr<HostCompiler>> largest = failure();
  (void)forms.quietly([&] {
    largest = forms.form(choice);
    return LogicalResult(largest);
  });
  if (failed(largest))
    return;
  std::optional<int64_t> ns = predictQuietly(forms, **largest);
  std::optional<int64_t> ofFeatures = predictQuietly(forms, **features);
  if (ns && (!ofFeatures || double(*ofFeatures) > (1 + kSurely) * double(*ns)))
    *features = std::move(*largest);
  else if (ns && double(*ns) <= (1 + kSurely) * double(*ofFeatures))
    compilers.push_back(std::move(*largest));
}

/// What is compared where devices share no memory, in this order.
static std::vector<SplitChoice> otherChoices(unsigned devices,
                                             const CompileOptions &asked) {
  SplitChoice half{
      .pieces = devices / 2, .reductions = true, .asked = asked.split};
  SplitChoice micro{.pieces = 2 * devices,
                    .reductions = true,
                    .chained = true,
                    .asked = asked.split};
  SplitChoice overlapped{.pieces = devices,
                         .reductions = true,
                         .sentPercent = kOverlapped,
                         .asked = asked.split};
  SplitChoice halfOverlapped = overlapped;
  halfOverlapped.pieces = half.pieces;
  SplitChoice sparing = overlapped;
  sparing.sentPercent = kSparing;
  SplitChoice rest{.pieces = devices,
                   .reductions = true,
                   .restPieces = half.pieces,
                   .restSentPercent = kAllOfRest,
                   .asked = asked.split};
  return {half, micro, overlapped, halfOverlapped, sparing, rest};
}

void baechi::addOtherCuts(const ModelForms &forms,
                          std::vector<ModelForms::Compiler> &compilers) {
  const DriverOptions &asked = forms.options();
  unsigned devices = placement::numComputing(forms.machine());
  // The options were read before.
  addLargestCut(forms, llvm::cantFail(splitChoiceOf(asked, devices)),
                compilers);
  if (asked.splits != "any" || devices < 2 || sharesMemory(forms.machine()))
    return;
  std::vector<SplitChoice> choices = otherChoices(devices, asked);
  Phase phase(forms.heard(), "comparing cuts");
  size_t done = 0, total = compilers.size() + choices.size();
  std::optional<int64_t> least;
  int64_t numFirstCut = 0;
  std::set<std::string> seen;
  for (const std::unique_ptr<HostCompiler> &compiler : compilers) {
    phase(done++, total);
    numFirstCut = std::max(numFirstCut, numCut(compiler->splits()));
    seen.insert(compiler->splits().cuts);
    if (std::optional<int64_t> ns = predictQuietly(forms, *compiler))
      least = std::min(*ns, least.value_or(*ns));
  }
  size_t operations = compilers.front()->operatorsBefore();
  // What more is in as many pieces where less is sent is no rest.
  bool mayHaveRest = false;
  std::unique_ptr<HostCompiler> best;
  for (const SplitChoice &choice : choices) {
    phase(done++, total);
    if (choice.pieces < 2 || choice.restPieces == 1 ||
        forms.heard().isStopped() || (choice.restPieces > 1 && !mayHaveRest) ||
        (choice.chained && operations * choice.pieces > kMostOperations))
      continue;
    FailureOr<std::unique_ptr<HostCompiler>> formed = failure();
    // A batch may be too small for so many; and several ways to count what is
    // sent may have one answer.
    auto isNew = [&](const SplitReport &report) {
      if (choice.pieces == devices && choice.sentPercent == kOverlapped)
        mayHaveRest = numFirstCut > 0 && numCut(report) == numFirstCut;
      return !report.classes.empty() && seen.insert(report.cuts).second;
    };
    (void)forms.quietly([&] {
      formed = forms.form(choice, isNew);
      return LogicalResult(formed);
    });
    if (failed(formed))
      continue;
    std::optional<int64_t> ns = predictQuietly(forms, **formed);
    if (!ns || (least && *ns >= *least))
      continue;
    least = ns;
    best = std::move(*formed);
  }
  phase(total, total);
  if (best)
    compilers.push_back(std::move(best));
}

//===- CutToFit.cpp - Cuts that make a step fit ---------------------------===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Where one operator needs more than a device has, or no plan of the whole
/// step fits, what needs most is cut, into as few pieces as help: whole, and in
/// micro-batches, rules are added for the operator that needs most by then, one
/// after the other, until a plan fits.
///
//===----------------------------------------------------------------------===//

#include "Baechi/Analysis/Program.h"
#include "Baechi/Driver/Compilation/Compilation.h"
#include "Baechi/Driver/Input/Errors.h"
#include "Baechi/Pipelines/Pipelines.h"
#include "Baechi/Placement/Model/Pool.h"
#include "Baechi/Transforms/Passes.h"
#include "Cuttables.h"
#include "mlir/Pass/PassManager.h"
#include <deque>

using namespace mlir;
using namespace baechi;

/// So many rules are added to one way, and so many are looked at for each.
static constexpr size_t kMostRules = 16;
static constexpr int kMostOutlined = 24;
/// So many of the operations that an operator was formed of are cut.
static constexpr size_t kMostOperations = 3;
/// So many ways that fit are compiled and compared with the whole step.
static constexpr int kMostCompared = 4;
/// Beside a way that fits and is not known to have the whole step's bits so
/// many others are looked at, of which one may be known to, ...
static constexpr int kMostBeside = 2;
/// ... and is taken where its step is predicted to be no longer than this.
static constexpr double kAboutAsLong = 1.05;

bool Compilation::mayCutToFit() const {
  return asked.fitMemory == "auto" && asked.replicas == 1 &&
         asked.exchange.empty() && !hasDeviceOf("cuda") &&
         (asked.splits == "none" || asked.splits == "exact" ||
          asked.splits == "any");
}

OwningOpRef<ModuleOp> Compilation::outline(const SplitChoice &choice) {
  OwningOpRef<ModuleOp> trial = uncut->clone();
  PassManager forming(trial->getContext());
  // What is taken is formed again.
  forming.enableVerifier(false);
  // How much scratch kernels need takes their code to know.
  populateOutlining(forming, /*products=*/nullptr, choice);
  forming.addPass(createAnnotateCosts(nullptr));
  forming.addPass(createColocate());
  return succeeded(forming.run(*trial)) ? std::move(trial) : nullptr;
}

std::optional<Cuttables> Compilation::findCuttables() {
  OwningOpRef<ModuleOp> inlined = uncut->clone();
  PassManager passes(inlined->getContext());
  passes.addPass(createInlineStep());
  if (failed(passes.run(*inlined)))
    return std::nullopt;
  FailureOr<FunctionOpInterface> step = findStep(*inlined);
  if (failed(step))
    return std::nullopt;
  return Cuttables(*step);
}

/// The operator of \p formed that needs most, with the roofline's costs.
/// \p costed: its module.
static std::optional<Neediest>
neediestWithScratch(ModuleOp formed, const placement::Machine &target,
                    OwningOpRef<ModuleOp> &costed) {
  costed = formed.clone();
  PassManager costs(costed->getContext());
  costs.addPass(createAnnotateCosts(nullptr));
  costs.addPass(createColocate());
  if (failed(costs.run(*costed)))
    return std::nullopt;
  return neediestOf(*costed, target);
}

/// Ways to cut \p own, each alone and with \p makers, in so many pieces.
static std::vector<std::vector<std::string>>
rulesIn(int64_t pieces, ArrayRef<Cuttable> own, ArrayRef<Cuttable> makers) {
  std::vector<std::vector<std::string>> all;
  for (const Cuttable &each : own)
    for (size_t dim = 0, rank = each.type.getRank(); dim < rank; ++dim) {
      if (each.type.getDimSize(dim) < pieces)
        continue;
      std::vector<Cuttable> cut{each};
      all.push_back(rulesFor(cut, dim, pieces));
      llvm::append_range(cut, makers);
      std::vector<std::string> rules = rulesFor(cut, dim, pieces);
      if (rules.size() > 1)
        all.push_back(std::move(rules));
    }
  return all;
}

bool Compilation::addRule(SplitChoice &choice, const Cuttables &cuttables,
                          const Neediest &most, CutsSeen &seen) {
  if (seen.outlined >= kMostOutlined)
    return false;
  auto needOf = [&](const SplitChoice &way) -> std::optional<Neediest> {
    OwningOpRef<ModuleOp> trial = outline(way);
    return trial ? neediestOf(*trial, target) : std::nullopt;
  };
  if (!seen.most && !(seen.most = needOf(choice)))
    return false;
  const Neediest before = *seen.most;
  std::vector<Cuttable> own = cuttables.of(most.op, kMostOperations,
                                           choice.asked),
                        makers = cuttables.ofMakers(most.op, choice.asked);
  std::optional<SplitChoice> best;
  std::pair<int64_t, int64_t> least{before.lacking, before.bytes};
  bool isEnough = false;
  for (int64_t pieces : {2, 4, 8, 16}) {
    for (std::vector<std::string> &rules : rulesIn(pieces, own, makers)) {
      if (listener.isStopped() || seen.outlined++ >= kMostOutlined)
        break;
      SplitChoice way = choice;
      llvm::append_range(way.asked, rules);
      std::optional<Neediest> now = needOf(way);
      if (!now)
        continue;
      std::pair<int64_t, int64_t> needs{now->lacking, now->bytes};
      // What needs most may do so for its code's scratch, which outlines lack:
      // then nothing that they show has to become less.
      bool isHidden = !best && before.fits() && needs <= least;
      if (needs >= least && !isHidden)
        continue;
      least = needs;
      isEnough = now->fits() || !now->isOf(most);
      best = std::move(way);
      seen.most = std::move(now);
    }
    // No more pieces than the operator has to be cut in.
    if (isEnough)
      break;
  }
  if (best)
    choice = std::move(*best);
  return best.has_value();
}

bool Compilation::formToFit(FittingCut &fitting, const Cuttables &cuttables) {
  CutsSeen seen;
  SplitChoice &choice = fitting.way;
  CompileOptions options = asked;
  options.budget = "0";
  for (size_t rules = 0; rules <= kMostRules && !listener.isStopped();
       ++rules) {
    FailureOr<std::unique_ptr<HostCompiler>> formed = form(choice, *uncut);
    if (failed(formed))
      return false;
    OwningOpRef<ModuleOp> costed;
    std::optional<Neediest> most =
        neediestWithScratch((*formed)->module(), target, costed);
    if (!most)
      return false;
    bool isCut = choice.chained || choice.asked.size() > asked.split.size();
    if (isCut && most->fits())
      if (FailureOr<int64_t> ns =
              (*formed)->predict(target, options, /*mayRewrite=*/true);
          succeeded(ns)) {
        fitting.compiler = std::move(*formed);
        fitting.predictedNs = *ns;
        return true;
      }
    // A rule would cut the batch in another number of pieces.
    bool mayAdd = choice.ordered || !choice.chained;
    if (!mayAdd || !most->op || !addRule(choice, cuttables, *most, seen))
      return false;
  }
  return false;
}

FailureOr<CompiledProgram>
Compilation::compileInPieces(FittingCut &fitting, SetArguments setArguments,
                             std::string &differs) {
  HostCompiler &before = *hostCompiler;
  use(*fitting.compiler);
  bool keepsBits = asked.splits == "none";
  if (keepsBits && fitting.unproven.empty())
    useGeneratedCode(module());
  llvm::Error error = findCurrentCosts(setArguments);
  FailureOr<CompiledProgram> program = failure();
  if (error)
    llvm::consumeError(std::move(error));
  else
    program = hostCompiler->compile(target, asked, "baechi", /*isLast=*/false);
  if (succeeded(program) && keepsBits && !fitting.unproven.empty()) {
    llvm::Expected<std::string> difference =
        differenceFromWhole(*compilers.front(), *program, setArguments);
    if (!difference)
      differs = "whether the pieces have its bits is not known: " +
                llvm::toString(difference.takeError());
    else if (!difference->empty())
      differs = "the pieces' " + *difference +
                " differs from the whole step's (" + fitting.unproven + ")";
    if (!differs.empty())
      program = failure();
  }
  if (failed(program)) {
    use(before);
    // Another may get its place in memory.
    std::erase_if(singlePrograms, [&](const auto &entry) {
      return entry.first.first == fitting.compiler.get();
    });
    fitting.compiler.reset();
  }
  return program;
}

std::vector<SplitChoice> Compilation::waysToCut() const {
  std::vector<SplitChoice> ways{firstChoice};
  // Where sums in their order take too much, pieces may have the same bits
  // nevertheless.
  for (unsigned count : {2, 4, 8, 16})
    for (bool ordered : {true, false})
      if (asked.splits != "exact")
        ways.push_back({.pieces = count,
                        .reductions = true,
                        .chained = true,
                        .ordered = ordered,
                        .asked = asked.split});
  return ways;
}

/// What is told of while \p way is tried.
static StringRef phaseOf(const SplitChoice &way) {
  if (!way.chained)
    return "trying cuts of single operators";
  switch (way.pieces) {
  case 2:
    return "trying 2 micro-batches";
  case 4:
    return "trying 4 micro-batches";
  case 8:
    return "trying 8 micro-batches";
  }
  return "trying 16 micro-batches";
}

FailureOr<CompiledProgram> Compilation::takeCut(FittingCut &fitting,
                                                const Neediest &most,
                                                SetArguments setArguments,
                                                std::string &why) {
  FailureOr<CompiledProgram> program = failure();
  std::string differs;
  (void)quietly([&] {
    program = compileInPieces(fitting, setArguments, differs);
    return LogicalResult(program);
  });
  endPhases();
  CutReport report;
  report.neediest = most.name;
  report.needs = most.bytes;
  report.device = most.device;
  report.memory = most.memory;
  report.microBatches = fitting.way.chained ? fitting.way.pieces : 0;
  report.rules.assign(fitting.way.asked.begin() + asked.split.size(),
                      fitting.way.asked.end());
  if (failed(program)) {
    if (why.empty() && !differs.empty())
      why = "cut by " + report.request() + " it fits, but " + differs;
    return failure();
  }
  using Bits = CutReport::Bits;
  report.bits = asked.splits == "exact"    ? Bits::Exact
                : asked.splits != "none"   ? Bits::Rounded
                : fitting.unproven.empty() ? Bits::Proven
                                           : Bits::Compared;
  report.unproven = fitting.unproven;
  cutReport = std::move(report);
  compilers.push_back(std::move(fitting.compiler));
  microBatches = 0;
  return program;
}

FailureOr<CompiledProgram> Compilation::cutToFit(SetArguments setArguments,
                                                 std::string &why) {
  std::optional<Cuttables> cuttables = findCuttables();
  std::optional<Neediest> most =
      neediestOf(compilers.front()->module(), target);
  if (!cuttables || !most)
    return failure();
  std::vector<SplitChoice> ways = waysToCut();
  std::deque<FittingCut> fitting; // to be taken, the best first
  auto next = ways.begin();
  auto formNext = [&] {
    FittingCut cut;
    Phase phase(listener, phaseOf(*next));
    phase(next - ways.begin(), ways.size());
    cut.way = std::move(*next++);
    (void)quietly([&] {
      bool fits = formToFit(cut, *cuttables);
      if (fits && asked.splits == "none")
        cut.unproven = whyNotProven(cut.way);
      if (fits)
        fitting.push_back(std::move(cut));
      return success(fits);
    });
  };
  for (int taken = 0; taken < kMostCompared; ++taken) {
    int beside = 0;
    while (next != ways.end() && !listener.isStopped()) {
      bool waits = !fitting.empty();
      if (waits && (fitting.front().unproven.empty() || fitting.size() > 1 ||
                    beside++ == kMostBeside))
        break;
      formNext();
    }
    if (fitting.empty() || listener.isStopped())
      break;
    if (fitting.size() > 1 && fitting.back().unproven.empty() &&
        double(fitting.back().predictedNs) <=
            kAboutAsLong * double(fitting.front().predictedNs))
      std::swap(fitting.front(), fitting.back());
    FailureOr<CompiledProgram> program =
        takeCut(fitting.front(), *most, setArguments, why);
    if (succeeded(program))
      return program;
    fitting.pop_front();
  }
  return failure();
}

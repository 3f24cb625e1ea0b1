//===- FittingCuts.cpp - Cuts that make a step fit ------------------------===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Where one operator needs more than a device has, or no plan of the whole
/// step fits, what needs most is cut.
///
/// Generated code rounds after each operation, whatever it is fused with, so
/// pieces whose sums are added up in the order of the whole's have its bits
/// (Analysis/SumOrders.h). What libraries do by the size of a product, nobody
/// says.
///
//===----------------------------------------------------------------------===//

#include "Baechi/Driver/Cuts/FittingCuts.h"
#include "Baechi/Analysis/ExactSums.h"
#include "Baechi/Analysis/PlacementProblem.h"
#include "Baechi/Analysis/Program.h"
#include "Baechi/Conversion/Kernels/Host/HostKernels.h"
#include "Baechi/Dialect/Baechi.h"
#include "Baechi/Placement/Model/Pool.h"
#include "Baechi/Transforms/Passes.h"
#include "mlir/Pass/PassManager.h"

using namespace mlir;
using namespace baechi;

/// So many rules are added to one way, and so many are looked at for each.
static constexpr size_t kMostRules = 16;
static constexpr int kMostOutlined = 24;
/// Once outlines of so many operators were formed no more are, for
/// micro-batches and for cuts of single operators, but of the first of these.
static constexpr size_t kMostOutlinedOperators = 12'000;
/// So many of the operations that an operator was formed of are cut.
static constexpr size_t kMostOperations = 3;
/// Beside a way that fits and is not known to have the whole step's bits so
/// many others are looked at, of which one may be known to and is taken where
/// its step is about as long.
static constexpr int kMostBeside = 2;

std::optional<Cuttables> baechi::findCuttables(ModuleOp model) {
  OwningOpRef<ModuleOp> inlined = model.clone();
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

/// What the operators of \p costed take at least: one after the other, or on
/// all devices at once.
static int64_t workNs(ModuleOp costed, const placement::Machine &target) {
  FailureOr<StepGraph> graph = buildStepGraph(costed);
  int64_t ns = 0;
  placement::Machine computing = placement::withoutPools(target);
  if (succeeded(graph))
    for (const placement::Operator &op : graph->graph.ops) {
      std::optional<int64_t> least;
      for (const placement::Device &device : computing.devices)
        if (std::optional<int64_t> one = placement::timeOn(op, device.kind))
          least = std::min(*one, least.value_or(*one));
      ns += least.value_or(0);
    }
  return ns / std::max<int64_t>(placement::numComputing(target), 1);
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
      // One that makes an operand may have the operator's own name.
      llvm::copy_if(
          makers, std::back_inserter(cut),
          [&](const Cuttable &maker) { return maker.name != each.name; });
      std::vector<std::string> rules = rulesFor(cut, dim, pieces);
      if (rules.size() > 1)
        all.push_back(std::move(rules));
    }
  return all;
}

/// Ways to cut the step, of which the first that fits and has its bits is
/// taken.
std::vector<FittingCuts::Way> FittingCuts::waysToCut(const ModelForms &forms,
                                                     const SplitChoice &first) {
  const CompileOptions &asked = forms.options();
  std::vector<Way> ways{{first}};
  // What asks for other pieces of the batch has no room for these.
  bool mayBeChained =
      asked.replicas == 1 && (asked.splits == "none" ||
                              asked.splits == "exact" || asked.splits == "any");
  // Where sums in their order take too much, pieces may have the same bits
  // nevertheless.
  for (unsigned count : {2, 4, 8, 16})
    for (bool ordered : {true, false})
      if (mayBeChained)
        ways.push_back({{.pieces = count,
                         .reductions = true,
                         .exact = first.exact,
                         .chained = true,
                         .ordered = ordered,
                         .asked = asked.split}});
  // The fewest pieces in which each operator fits by itself may leave too
  // little beside it.
  for (int64_t fewest : {4, 8, 16})
    ways.push_back({first, fewest});
  return ways;
}

FittingCuts::FittingCuts(const ModelForms &forms, HostCompiler &whole,
                         const SplitChoice &first)
    : forms(forms), outlines(forms), whole(whole), first(first),
      most(neediestOf(whole.module(), forms.machine())),
      cuttables(findCuttables(forms.model())), ways(waysToCut(forms, first)) {
  if (!cuttables)
    most = std::nullopt;
  if (most && !most->fits())
    stuck[false].push_back({{most->nameOfWhole(), most->bytes}});
}

/// Whether rules are added to \p choice: they would cut the batch in another
/// number of pieces than sums are cut in.
static bool mayAddTo(const SplitChoice &choice) {
  return choice.ordered || !choice.chained;
}

bool FittingCuts::addRule(SplitChoice &choice, const Neediest &neediest,
                          Seen &seen) {
  size_t &operators = outlinedOperators[choice.chained];
  bool isFirst = !choice.chained && seen.fewest <= 2;
  auto isExhausted = [&] {
    seen.isExhausted = seen.outlined >= kMostOutlined ||
                       (!isFirst && operators >= kMostOutlinedOperators);
    return seen.isExhausted;
  };
  if (isExhausted())
    return false;
  if (!seen.most && !(seen.most = outlines.neediest(choice)))
    return false;
  const Neediest before = *seen.most;
  std::vector<Cuttable> own = cuttables->of(neediest.op, kMostOperations,
                                            choice.asked),
                        makers = cuttables->ofMakers(neediest.op, choice.asked);
  std::optional<SplitChoice> best;
  std::pair<int64_t, int64_t> least{before.lacking, before.bytes};
  bool isEnough = false;
  for (int64_t pieces : {2, 4, 8, 16}) {
    if (pieces < seen.fewest)
      continue;
    for (std::vector<std::string> &rules : rulesIn(pieces, own, makers)) {
      if (forms.heard().isStopped() || isExhausted())
        break;
      ++seen.outlined;
      SplitChoice way = choice;
      llvm::append_range(way.asked, rules);
      size_t formed = outlines.operatorsFormed();
      std::optional<Neediest> now = outlines.neediest(way);
      operators += outlines.operatorsFormed() - formed;
      if (!now)
        continue;
      std::pair<int64_t, int64_t> needs{now->lacking, now->bytes};
      // What needs most may do so for its code's scratch, which outlines lack:
      // then nothing that they show has to become less.
      bool isHidden = !best && before.fits() && needs <= least;
      if (needs >= least && !isHidden)
        continue;
      least = needs;
      isEnough = now->fits() || !now->isOf(neediest);
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

void FittingCuts::keep(const SplitChoice &way, const Neediest &needs) {
  // No option asks for pieces whose sums stay in order.
  if (way.ordered ||
      needs.bytes >= (leastUnfit ? leastUnfit->most.bytes : most->bytes))
    return;
  leastUnfit = {way, needs};
  leastUnfit->most.op = nullptr;
}

bool FittingCuts::isInVain(const Way &way) const {
  if (way.choice.chained)
    return moreAreInVain[way.choice.ordered];
  return isLastResort(way) && rulesAreInVain;
}

bool FittingCuts::isStuck(const SplitChoice &choice,
                          const Neediest &start) const {
  return llvm::any_of(stuck[mayAddTo(choice)], [&](const Stuck &before) {
    return llvm::all_of(before, [&](const auto &entry) {
      auto now = start.tooLarge.find(entry.first);
      return now != start.tooLarge.end() && now->second >= entry.second;
    });
  });
}

bool FittingCuts::hasRule(Operation *op, ArrayRef<std::string> rules) const {
  auto namesOf = [&](ArrayRef<std::string> without) {
    std::vector<std::string> names;
    for (const Cuttable &each : cuttables->of(op, kMostOperations, without))
      names.push_back(each.name);
    return names;
  };
  return namesOf({}) != namesOf(rules);
}

void FittingCuts::addStuck(const SplitChoice &choice, const Neediest &start,
                           ArrayRef<std::string> path) {
  Stuck needs;
  for (const std::string &name : path) {
    auto before = start.tooLarge.find(name);
    // It became too large by other cuts.
    if (before == start.tooLarge.end())
      return;
    needs.insert(*before);
  }
  stuck[mayAddTo(choice)].push_back(std::move(needs));
}

bool FittingCuts::form(FittingCut &fitting, int64_t fewest) {
  Seen seen;
  seen.fewest = fewest;
  SplitChoice &choice = fitting.way;
  Neediest start;                ///< before rules are added
  std::vector<std::string> path; ///< what rules are added for
  for (size_t rules = 0; rules <= kMostRules && !forms.heard().isStopped();
       ++rules) {
    FailureOr<std::unique_ptr<HostCompiler>> formed = forms.form(choice);
    if (failed(formed))
      return false;
    operatorsFormed += (*formed)->operatorsFormed();
    OwningOpRef<ModuleOp> costed;
    std::optional<Neediest> neediest =
        neediestWithScratch((*formed)->module(), forms.machine(), costed);
    if (!neediest)
      return false;
    // Plans take no less.
    if (int64_t ns = isInstead ? workNs(*costed, forms.machine()) : 0;
        isInstead && ns >= mostNs) {
      leastTooLong = std::min(ns, leastTooLong.value_or(ns));
      return false;
    }
    bool isCut =
        choice.chained || choice.asked.size() > forms.options().split.size();
    if (isCut && neediest->fits()) {
      // Other ways lead to the same pieces, too.
      std::string digest = digestOf((*formed)->module());
      FailureOr<int64_t> ns = failure();
      if (!inVain.contains(digest))
        ns = forms.predictFitting(**formed);
      if (succeeded(ns)) {
        fitting.compiler = std::move(*formed);
        fitting.predictedNs = *ns;
        return true;
      }
      inVain.insert(digest);
    }
    if (isCut)
      keep(choice, *neediest);
    if (rules == 0) {
      start = *neediest;
      start.op = nullptr;
      if (choice.chained && isStuck(choice, start)) {
        moreAreInVain[choice.ordered] = true;
        return false;
      }
    }
    if (!neediest->fits())
      path.push_back(neediest->nameOfWhole());
    if (mayAddTo(choice) && neediest->op && addRule(choice, *neediest, seen))
      continue;
    if (!neediest->fits() && !seen.isExhausted) {
      addStuck(choice, start, path);
      // Of what is in pieces already, more of them may help.
      rulesAreInVain |= !choice.chained && neediest->op &&
                        !hasRule(neediest->op, choice.asked);
    }
    return false;
  }
  return false;
}

/// The first kernel of \p module that a library computes; empty: none is.
static StringRef libraryKernel(ModuleOp module) {
  for (auto kernel : module.getOps<func::FuncOp>())
    if (kernel->hasAttr(BaechiDialect::kKernel) && !kernel.isExternal() &&
        askedImplementation(kernel) != kGenerated &&
        askedImplementation(kernel) != kExact)
      return kernel.getSymName();
  return "";
}

std::string FittingCuts::whyNotProven(const SplitChoice &way) {
  if (StringRef name = libraryKernel(whole.module()); !name.empty())
    return "a library computes '" + name.str() + "'";
  if (!ofWhole && !(ofWhole = forms.sumOrders(first)))
    return "the whole step cannot be formed again";
  std::optional<SumOrders> pieces = forms.sumOrders(way);
  return pieces ? whyBitsMayDiffer(*ofWhole, *pieces)
                : "the pieces cannot be formed again";
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

void FittingCuts::formNext() {
  if (isInVain(ways[numFormed])) {
    ++numFormed;
    return;
  }
  FittingCut cut;
  Phase phase(forms.heard(), phaseOf(ways[numFormed].choice));
  phase(numFormed, ways.size());
  int64_t fewest = ways[numFormed].fewest;
  cut.way = std::move(ways[numFormed++].choice);
  (void)forms.quietly([&] {
    bool fits = form(cut, fewest);
    // Where each sum has one order and none is cut, nothing differs.
    bool keepsBits = forms.options().splits != "any",
         isExact = cut.way.exact && !cut.way.reductions;
    if (fits && keepsBits && !isExact)
      cut.unproven = whyNotProven(cut.way);
    if (fits)
      waiting.push_back(std::move(cut));
    return success(fits);
  });
}

std::optional<FittingCut> FittingCuts::nextTried() {
  while (waiting.empty() && numFormed < ways.size() &&
         operatorsFormed < kMostOperators && !forms.heard().isStopped())
    formNext();
  if (waiting.empty())
    return std::nullopt;
  FittingCut cut = std::move(waiting.front());
  waiting.pop_front();
  return cut;
}

std::optional<FittingCut> FittingCuts::next() {
  if (enoughNs)
    return shortest();
  auto isStopped = [&] { return forms.heard().isStopped(); };
  int beside = 0;
  while (numFormed < ways.size() && !isStopped()) {
    bool waits = !waiting.empty();
    if (waits && (waiting.front().unproven.empty() || waiting.size() > 1 ||
                  beside++ == kMostBeside))
      break;
    formNext();
  }
  if (waiting.empty() || isStopped())
    return std::nullopt;
  if (waiting.size() > 1 && waiting.back().unproven.empty() &&
      double(waiting.back().predictedNs) <=
          kAboutAsLong * double(waiting.front().predictedNs))
    std::swap(waiting.front(), waiting.back());
  FittingCut best = std::move(waiting.front());
  waiting.pop_front();
  return best;
}

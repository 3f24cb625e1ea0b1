//===- Place.cpp - Place every operator on a device -*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Baechi/Analysis/MachineAttr.h"
#include "Baechi/Analysis/PlacementProblem.h"
#include "Baechi/Placement/Io/Files.h"
#include "Baechi/Placement/Model/Text.h"
#include "Baechi/Placement/Session/PlaceBriefly.h"
#include "Baechi/Transforms/Passes.h"
#include "PlacementRemarks.h"
#include "Transforms/PlacerOption.h"
#include "Transforms/PlanPasses.h"
#include "llvm/ADT/StringExtras.h"
#include <algorithm>

namespace baechi {
#define GEN_PASS_DEF_PLACE
#include "Baechi/Transforms/Passes.h.inc"
} // namespace baechi

using namespace mlir;
using namespace baechi;

namespace {
std::string joined(const std::vector<std::string> &names) {
  return llvm::join(names, ", ");
}

/// Placers of the library that the passes cannot run, and what does instead.
constexpr std::pair<StringLiteral, StringLiteral> elsewhere[] = {
    {"min-cut", "needs a graph partitioner, which the passes are not linked "
                "with; use the tool baechi-place"}};

struct Place : public baechi::impl::PlaceBase<Place> {
  using PlaceBase::PlaceBase;
  Place(const PlaceOptions &options, std::function<bool()> stopped,
        bool explains, bool inTurn)
      : PlaceBase(options), stopped(std::move(stopped)), explains(explains),
        inTurn(inTurn) {}

  LogicalResult
  initializeOptions(StringRef options,
                    function_ref<LogicalResult(const Twine &)> error) override {
    return readPlacerOptions(
        options, placer,
        [&](StringRef keyed) { return Pass::initializeOptions(keyed, error); },
        error);
  }

  /// Fills in \p steps from the option; false with a diagnostic otherwise.
  bool readGrouping(std::vector<std::string> &steps) {
    steps.clear();
    if (grouping == "none")
      return true;
    if (grouping == "all") {
      steps = placement::PlaceOptions().grouping;
      return true;
    }
    std::string list = grouping;
    std::replace(list.begin(), list.end(), ',', '+');
    for (StringRef name : llvm::split(StringRef(list), '+')) {
      if (!llvm::is_contained(placement::groupingNames(), name.str())) {
        emitError(getOperation().getLoc())
            << "unknown grouping step '" << name << "'; known: all, none, "
            << joined(placement::groupingNames())
            << "; join several with '+' or ','";
        return false;
      }
      steps.push_back(name.str());
    }
    return true;
  }

  void runOnOperation() override {
    ModuleOp module = getOperation();
    std::optional<placement::Machine> target = machineOf(module, machine);
    placement::PlaceOptions options;
    if (!target || !readGrouping(options.grouping))
      return signalPassFailure();
    if (std::string mistake = wrongPlacer(placer); !mistake.empty()) {
      emitError(module.getLoc()) << mistake;
      return signalPassFailure();
    }
    std::string mistake = wrongObjective(objective, &*target);
    if (mistake.empty())
      mistake =
          placement::parseObjective(objective.getValue(), options.objective);
    if (!mistake.empty()) {
      emitError(module.getLoc()) << mistake;
      return signalPassFailure();
    }
    if (std::string error = placement::parseBudget(budget, options.budget);
        !error.empty()) {
      emitError(module.getLoc()) << error;
      return signalPassFailure();
    }
    if (!expert.empty())
      if (std::string error =
              placement::readExpert(expert, *target, options.expert);
          !error.empty()) {
        emitError(module.getLoc()) << error;
        return signalPassFailure();
      }
    FailureOr<FunctionOpInterface> step = findStep(module);
    if (failed(step))
      return signalPassFailure();
    FailureOr<StepGraph> graph = buildStepGraph(*step);
    if (failed(graph))
      return signalPassFailure();

    options.placer = placer;
    options.cancelled = stopped;
    options.inTurn = inTurn;
    placement::Problem problem{graph->graph, *target};
    placement::PlaceResult result =
        explains ? placement::place(problem, options)
                 : placement::placeBriefly(problem, options);
    if (!result.placement) {
      // A name alone is in the error's text.
      Operation *about =
          result.errorOp < 0 ? nullptr : graph->operation(result.errorOp);
      bool isInFile =
          about && about->getLoc()->findInstanceOf<FileLineColLoc>();
      emitError(isInFile ? about->getLoc() : step->getLoc()) << result.error;
      return signalPassFailure();
    }
    for (const std::string &note : result.notes)
      remark::analysis(step->getLoc(), remarkOn("note", "baechi-place", *step))
          << note;
    writePlacement(*graph, *target, placer, result);
    remarkPlacement(*graph, *target, options, result);
  }

  std::function<bool()> stopped;
  bool explains = true, inTurn = false;
};
} // namespace

std::unique_ptr<Pass> baechi::createPlace(const PlaceOptions &options,
                                          std::function<bool()> stopped) {
  return createPlace(options, std::move(stopped), /*explains=*/true);
}

std::unique_ptr<Pass> baechi::createPlace(const PlaceOptions &options,
                                          std::function<bool()> stopped,
                                          bool explains, bool inTurn) {
  return std::make_unique<Place>(options, std::move(stopped), explains, inTurn);
}

std::string baechi::wrongPlacer(StringRef placer) {
  for (auto [name, instead] : elsewhere)
    if (placer == name)
      return ("placer '" + placer + "' " + instead).str();
  std::vector<std::string> known = placement::placerNames();
  if (llvm::is_contained(known, placer))
    return "";
  llvm::erase_if(known, [](const std::string &each) {
    return llvm::is_contained(llvm::make_first_range(elsewhere), each);
  });
  return ("unknown placer '" + placer + "'" +
          placement::suggestion(placer, known) + "; known: " + joined(known))
      .str();
}

std::string baechi::wrongObjective(StringRef objective,
                                   const placement::Machine *machine) {
  if (objective != "makespan" && objective != "period")
    return ("unknown objective '" + objective + "'; known: makespan, period")
        .str();
  if (objective == "period" && machine)
    for (const placement::Device &device : machine->devices)
      if (device.kind != "host")
        return "objective=period plans steps that overlap, and steps with a "
               "device of kind '" +
               device.kind + "' ('" + device.name +
               "') do not: leave it out, or the device";
  return "";
}

LogicalResult
baechi::readPlacerOptions(StringRef options, const std::string &placer,
                          function_ref<LogicalResult(StringRef)> read,
                          function_ref<LogicalResult(const Twine &)> error) {
  SmallVector<StringRef> words;
  options.split(words, ' ', -1, /*KeepEmpty=*/false);
  std::string keyed;
  bool bare = false;
  for (StringRef word : words) {
    if (word.contains('=')) {
      keyed += (word + " ").str();
      continue;
    }
    if (bare)
      return error("more than one placer: '" + word + "'");
    bare = true;
    keyed += ("placer=" + word + " ").str();
  }
  if (failed(read(keyed)))
    return failure();
  std::string mistake = wrongPlacer(placer);
  return mistake.empty() ? success() : error(mistake);
}

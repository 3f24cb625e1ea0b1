//===- StepPlanner.h - Place until the memory plan fits ---------*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===-------------------------------------------------------------------*- C++
//-*-===//

#ifndef BAECHI_LIB_TRANSFORMS_PLACEANDPLAN_STEPPLANNER_H
#define BAECHI_LIB_TRANSFORMS_PLACEANDPLAN_STEPPLANNER_H

#include "Baechi/Analysis/StepSimulation.h"
#include "Baechi/Placement/Session/Place.h"
#include "Baechi/Transforms/PlanWatch.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/Diagnostics.h"
#include "mlir/IR/OwningOpRef.h"
#include "mlir/Pass/PassManager.h"
#include <utility>

namespace baechi {

/// Places a step's operators and plans its memory, again with other limits
/// where the plan does not fit. All of it works on one module, whose body it
/// replaces.
class StepPlanner {
public:
  using Said = std::vector<mlir::Diagnostic>;
  using Runner = std::function<llvm::LogicalResult(mlir::OpPassManager &)>;

  /// \p run: runs passes on \p module.
  StepPlanner(mlir::ModuleOp module, const placement::Machine &machine,
              PlaceOptions options, Runner run, PlanWatch watch)
      : module(module), machine(machine), options(std::move(options)),
        run(std::move(run)), watch(std::move(watch)),
        onlyCompares(this->watch.onlyCompares) {}

  /// Runs \p what and keeps what it says.
  template <typename Function> auto quietly(Said &said, Function what) {
    mlir::ScopedDiagnosticHandler handler(
        module.getContext(), [&](mlir::Diagnostic &diagnostic) {
          said.push_back(std::move(diagnostic));
          return mlir::success();
        });
    return what();
  }
  /// Says it after all.
  void tell(Said &said);

  /// Runs \p what of which nobody reads why there is no plan.
  template <typename Function> auto unread(Function what) {
    bool before = std::exchange(watch.explains, false);
    auto result = what();
    watch.explains = before;
    return result;
  }

  /// Places \p untouched, the module as it is, by \p placer.
  llvm::LogicalResult placeUntilItFits(llvm::StringRef placer,
                                       mlir::ModuleOp untouched,
                                       PlaceAndPlanReport &found);

  /// A tensor that is lent stays until its last use elsewhere. Where a device
  /// has no room for that, it lends nothing; where that does not help, nobody
  /// does, and it is the plan that the placer counted with.
  llvm::LogicalResult plan(Said &said, std::vector<ArenaReport> &arenas);

  /// A plan by the placer alone.
  struct PlannedAlone {
    mlir::OwningOpRef<mlir::ModuleOp> module;
    Said said;
    PlaceAndPlanReport report;
  };
  /// Whether the placer alone finds a plan of \p rewritten that fits; \p
  /// planned: becomes it.
  bool fits(mlir::ModuleOp rewritten, PlannedAlone &planned);

  /// Places \p rewritten, the module as it is or a rewrite that fits, by the
  /// whole budget, or, where a search leads to no plan, by the placer alone:
  /// what a search finds may leave less room. \p said: where neither has one,
  /// of the first. \p known: the latter's plan.
  llvm::LogicalResult placeFitting(mlir::ModuleOp rewritten, Said &said,
                                   PlaceAndPlanReport &tried,
                                   PlannedAlone *known = nullptr);

  /// The first of \p count rewrites, ever leaner ones, for which \p fits
  /// holds. On one device all before it are looked at. On several, where each
  /// takes a search, it is sought as if all fitted that come after one which
  /// does, and among the others only where that finds none and someone waits
  /// for an answer: those who only compare programs have more to ask.
  std::optional<size_t>
  firstThatFits(size_t count, llvm::function_ref<bool(size_t)> fits) const;

  /// What the planned module is predicted to take, by the runtime's rules: from
  /// its start to its end, or where the objective is the period, from one of
  /// several steps that overlap to the next.
  int64_t predictedNs();
  /// The same of \p step; nullopt where it would wait for ever.
  std::optional<int64_t> predictedNs(const StepProgram &step) const;

  void replaceBody(mlir::ModuleOp by);
  /// Whether limits were left out that are tried where nothing else is
  /// (PlanWatch::isLast).
  bool hasLeftOut() const { return leftOut; }
  bool isStopped() const { return watch.stopped && watch.stopped(); }
  /// Whether someone reads why there is no plan.
  bool explains() const { return watch.explains; }
  bool anyWillDo() const { return watch.anyWillDo; }
  /// Rewrites are placed and planned until one fits.
  static constexpr llvm::StringLiteral kPlanning = "planning what fits";
  /// \p done of \p total parts of \p what, a literal, are done. False: stop.
  bool goesOn(llvm::StringRef what, size_t done, size_t total) const {
    if (watch.progress)
      watch.progress(what, done, total);
    return !isStopped();
  }

  mlir::ModuleOp module;
  const placement::Machine &machine;

private:
  llvm::LogicalResult placeWithin(llvm::StringRef placer,
                                  const placement::Machine &limits, Said &said,
                                  PlaceAndPlanReport &found);
  void searchWithin(llvm::StringRef placer, const placement::Machine &limits,
                    mlir::ModuleOp untouched, Said &said, Said &saidOfPlan,
                    PlaceAndPlanReport &found);
  void use(PlannedAlone &known, Said &said, PlaceAndPlanReport &tried);
  bool mayTryLast();
  llvm::LogicalResult planInTurn(llvm::StringRef placer,
                                 mlir::ModuleOp untouched,
                                 PlaceAndPlanReport &found);
  bool searches() const;
  llvm::LogicalResult placeRewritten(mlir::ModuleOp rewritten,
                                     std::string effort, Said &said,
                                     PlaceAndPlanReport &tried);
  llvm::LogicalResult place(llvm::StringRef placer, Said &said,
                            PlaceAndPlanReport &found);
  llvm::LogicalResult runQuietly(mlir::OpPassManager &pipeline, Said &said);
  llvm::LogicalResult stop(Said &said, const PlaceAndPlanReport &found);
  int64_t takenOver();
  void noteTakenOver(Said &said, int64_t bytes);
  void refuseBeyond(Said &said, int64_t bytes);
  void remarkCopies(llvm::ArrayRef<std::string> copiedFrom);
  bool hasPinsToPools();

  PlaceOptions options;
  Runner run;
  PlanWatch watch;
  bool onlyCompares; ///< what is planned is not what is executed
  bool leftOut = false;
  bool inTurn = false; ///< what is placed runs one after the other
  int numMore = 0;     ///< attempts before a refusal
};

} // namespace baechi

#endif // BAECHI_LIB_TRANSFORMS_PLACEANDPLAN_STEPPLANNER_H

//===- Replicate.cpp - One part of the batch for each replica -------------===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Baechi/Analysis/Program.h"
#include "Baechi/Analysis/ReplicaSides.h"
#include "Baechi/Dialect/Replicas.h"
#include "Baechi/Transforms/Replicas/Passes.h"
#include "Describe.h"
#include "Pieces.h"
#include "WrittenParts.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/Matchers.h"

namespace baechi {
#define GEN_PASS_DEF_REPLICATE
#include "Baechi/Transforms/Replicas/Passes.h.inc"
} // namespace baechi

using namespace mlir;
using namespace baechi;
using namespace baechi::split;

/// One tensor of equal elements that two operations read would tie the batch to
/// a dimension of a parameter that is as long: each gets its own.
static void ownStorage(func::FuncOp step) {
  auto isStorage = [](Operation &op) {
    DenseElementsAttr constant;
    return isa<tensor::EmptyOp, linalg::FillOp>(op) ||
           (matchPattern(&op, m_Constant(&constant)) && constant.isSplat());
  };
  // Fills before what they fill.
  for (Operation &op : llvm::make_early_inc_range(llvm::reverse(step.front())))
    if (isStorage(op) && !op.use_empty()) {
      OpBuilder builder(&op);
      for (OpOperand &use : llvm::make_early_inc_range(
               llvm::drop_begin(op.getResult(0).getUses())))
        use.set(builder.clone(op)->getResult(0));
    }
}

namespace {
struct Replicate : public baechi::impl::ReplicateBase<Replicate> {
  using ReplicateBase::ReplicateBase;
  Replicate(const ReplicateOptions &options, SplitReport *report)
      : ReplicateBase(options), report(report) {}

  void runOnOperation() override {
    FailureOr<func::FuncOp> step = findStepToStore(getOperation());
    if (failed(step))
      return signalPassFailure();
    if (replicas < 2 || replicas > 64) {
      step->emitError("the step can have 2 to 64 replicas, not ")
          << replicas.getValue();
      return signalPassFailure();
    }
    if (auto written = (*step)->getAttrOfType<IntegerAttr>(kReplicas))
      return takeWritten(*step, written.getInt());
    ownStorage(*step);
    PlanOptions options;
    options.pieces = replicas;
    options.reductions = true;
    options.even = true;
    options.batch = true;
    FailureOr<SplitPlan> plan = planSplits(*step, options);
    if (failed(plan) || failed(checkParts(*step, *plan)))
      return signalPassFailure();
    if (getContext().getRemarkEngine())
      remarkPlan(*step, *plan);
    if (report)
      *report = describe(*step, *plan);
    Builder builder(&getContext());
    for (const Cut &cut : plan->cuts)
      for (const auto &[value, position] : cut.values)
        if (auto argument = dyn_cast<BlockArgument>(value))
          step->setArgAttr(argument.getArgNumber(), kBatched,
                           builder.getUnitAttr());
    (*step)->setAttr(kReplicas, builder.getI64IntegerAttr(replicas));
    rewriteInPieces(*step, *plan, Stored::InPieces);
  }

  /// The step has a copy for each of \p written replicas: nothing is cut.
  void takeWritten(func::FuncOp step, int64_t written) {
    if (written != int64_t(replicas)) {
      step.emitError("the step is written for ")
          << written << " replicas, and " << replicas.getValue()
          << " are asked for: ask for as many, or change the axis that it is "
             "written along";
      return signalPassFailure();
    }
    SplitReport::Class found;
    Storage storage = storeWrittenParts(step, written, found);
    llvm::DenseMap<Operation *, int64_t> sides = replicaSides(step);
    found.operations = llvm::count_if(
        sides, [](const auto &entry) { return entry.second == 0; });
    found.reductions = markExchanges(step, sides);
    if (!report)
      return;
    if (!found.sizes.empty())
      report->classes.push_back(std::move(found));
    describeStorage(storage, *report);
  }

  /// What joins values of several replicas: no product of one starts from
  /// another's.
  static int64_t
  markExchanges(func::FuncOp step,
                const llvm::DenseMap<Operation *, int64_t> &sides) {
    int64_t count = 0;
    for (auto join : step.getOps<linalg::GenericOp>())
      if (!sides.contains(join) &&
          llvm::any_of(join.getDpsInputs(), [&](Value value) {
            return sides.contains(value.getDefiningOp());
          })) {
        join->setAttr(BaechiDialect::kPartials,
                      UnitAttr::get(step.getContext()));
        ++count;
      }
    return count;
  }

  /// What persons ask for may have other sizes.
  LogicalResult checkParts(func::FuncOp step, const SplitPlan &plan) {
    for (const Cut &cut : plan.cuts)
      if (cut.sizes.size() != replicas || !llvm::all_equal(cut.sizes)) {
        Operation *first = cut.operations.front().first;
        InFlightDiagnostic diag =
            first->emitOpError()
            << "is asked for in " << cut.sizes.size() << " parts of "
            << cut.extent() << " elements, and there are "
            << replicas.getValue() << " replicas, whose parts are equal";
        diag.attachNote(step.getLoc()) << "the step";
        return failure();
      }
    return success();
  }

  SplitReport *report = nullptr;
};
} // namespace

std::unique_ptr<Pass> baechi::createReplicate(const ReplicateOptions &options,
                                              SplitReport *report) {
  return std::make_unique<Replicate>(options, report);
}

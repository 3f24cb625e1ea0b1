//===- Split.cpp - The pass that cuts operations into pieces --------------===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Baechi/Analysis/Program.h"
#include "Baechi/Analysis/SumOrders.h"
#include "Baechi/Transforms/Passes.h"
#include "Describe.h"
#include "Exchange.h"
#include "Moments.h"
#include "Pieces.h"
#include "Storage.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/Remarks.h"

namespace baechi {
#define GEN_PASS_DEF_SPLIT
#include "Baechi/Transforms/Passes.h.inc"
} // namespace baechi

using namespace mlir;
using namespace baechi;
using namespace baechi::split;

/// Pieces are made in the order of what they are pieces of.
Storage split::rewriteInPieces(func::FuncOp step, const SplitPlan &plan,
                               Stored stored, int64_t repeatedBytes) {
  OpBuilder builder(step.getContext());
  PieceTable table(builder, repeatedBytes);
  for (const Cut &cut : plan.cuts)
    for (const auto &[op, how] : cut.operations)
      for (Value result : op->getResults())
        if (plan.isJoinedInPieces(result))
          table.setJoinedInPieces(result);
  llvm::DenseMap<Operation *, Moments> moments =
      mergedMoments(plan, repeatedBytes);
  llvm::DenseSet<Operation *> made; // before their turn
  SmallVector<Operation *> gone;
  for (Operation &op :
       llvm::make_early_inc_range(step.front().without_terminator())) {
    builder.setInsertionPoint(&op);
    auto found = plan.cutOf.find(&op);
    if (found != plan.cutOf.end()) {
      gone.push_back(&op);
      const Cut &cut = plan.cuts[found->second];
      if (auto both = moments.find(&op); both != moments.end()) {
        makeMoments(builder, both->second, cut, table);
        made.insert(both->second.squares);
      } else if (!made.contains(&op)) {
        makePieces(builder, &op, cut, table);
      }
      continue;
    }
    if (plan.isPaddedInParts(&op)) {
      gone.push_back(&op);
      table.setPadded(cast<tensor::PadOp>(op));
      continue;
    }
    op.walk([&](Operation *inner) {
      for (OpOperand &operand : inner->getOpOperands())
        operand.set(table.whole(operand.get()));
    });
    table.setKept(&op);
  }
  return writeSignature(step, table, builder, gone, stored);
}

static remark::RemarkOpts about(func::FuncOp step, StringRef name) {
  return remark::RemarkOpts::name(name)
      .category("baechi-split")
      .function(step.getName());
}

/// What the signature has in pieces, and what not.
static void remarkStorage(func::FuncOp step, const Storage &storage) {
  if (storage.arguments + storage.results > 0)
    remark::passed(step.getLoc(), about(step, "stored-in-pieces"))
        << remark::metric("Arguments", storage.arguments)
        << remark::metric("Results", storage.results)
        << remark::metric("Bytes", storage.bytes);
  for (const Storage::Whole &whole : storage.whole)
    remark::missed(whole.loc, about(step, "stored-whole"))
        << remark::metric("Argument", int64_t(whole.argument))
        << remark::metric("Reason", whole.why);
}

static int64_t microseconds(double ns) { return std::llround(ns / 1e3); }

void split::remarkPlan(func::FuncOp step, const SplitPlan &plan) {
  for (const Cut &cut : plan.cuts) {
    std::string sizes;
    for (int64_t size : cut.sizesAt({.inner = cut.unit}))
      sizes += (sizes.empty() ? "" : "+") + std::to_string(size);
    int64_t partial = llvm::count_if(cut.operations, [](const auto &entry) {
      return entry.second.kind == OperationCut::Kind::Reduction;
    });
    if (!cut.operations.empty())
      remark::passed(cut.operations.front().first->getLoc(),
                     about(step, "split"))
          << remark::metric("Pieces", sizes)
          << remark::metric("Operations", int64_t(cut.operations.size()))
          << remark::metric("PartialResults", partial)
          << remark::metric("Reason", cut.why)
          << remark::metric("SavedUs", microseconds(cut.worth.savedNs))
          << remark::metric("CopiedUs", microseconds(cut.worth.copiedNs))
          << remark::metric("SentUs", microseconds(cut.worth.sentNs));
    for (Operation *op : cut.meetings)
      remark::missed(op->getLoc(), about(step, "pieces-meet"))
          << remark::metric("Reason",
                            cut.operations.contains(op)
                                ? "it reduces the dimension over all pieces, "
                                  "and pieces read the result"
                                : "it reads all pieces, and pieces read what "
                                  "it makes");
    for (const Whole &whole : cut.whole)
      if (!plan.isPaddedInParts(whole.op))
        remark::missed(whole.op->getLoc(), about(step, "not-split"))
            << remark::metric("Reason", whole.why);
  }
}

namespace {
struct Split : public baechi::impl::SplitBase<Split> {
  using SplitBase::SplitBase;
  Split(const SplitOptions &options, SplitReport *report, bool numbersSums)
      : SplitBase(options), report(report), numbersSums(numbersSums) {}

  void runOnOperation() override {
    FailureOr<func::FuncOp> step = stored ? findStepToStore(getOperation())
                                          : findStepToCut(getOperation());
    if (failed(step))
      return signalPassFailure();
    if (numbersSums)
      numberSums(*step);
    PlanOptions options;
    options.pieces = pieces;
    options.reductions = reductions;
    options.forced = forced;
    options.chained = chained;
    options.needsBatch = needsBatch;
    options.ordered = ordered;
    options.stored = stored;
    options.largestFirst = largestFirst;
    options.sentShare = double(sentPercent) / 100;
    options.restPieces = restPieces;
    options.restSentShare = double(restSentPercent) / 100;
    options.mergeMoments = mergeMoments;
    FailureOr<SplitPlan> plan = planSplits(*step, options);
    if (failed(plan))
      return signalPassFailure();
    if (getContext().getRemarkEngine())
      remarkPlan(*step, *plan);
    if (report)
      *report = describe(*step, *plan);
    std::optional<Exchange> exchange = Exchange::of(*step);
    Storage storage =
        rewriteInPieces(*step, *plan, stored ? Stored::InPieces : Stored::Whole,
                        exchange ? exchange->bytesOfLatency() : 0);
    if (getContext().getRemarkEngine())
      remarkStorage(*step, storage);
    if (report)
      describeStorage(storage, *report);
    if (chained && !plan->cuts.empty())
      (*step)->setAttr(BaechiDialect::kChained, UnitAttr::get(&getContext()));
    for (const Cut &cut : plan->cuts)
      cutOperations += cut.operations.size();
  }

  SplitReport *report = nullptr;
  bool numbersSums = false;
};
} // namespace

std::unique_ptr<Pass> baechi::createSplit(const SplitOptions &options,
                                          SplitReport *report,
                                          bool numbersSums) {
  return std::make_unique<Split>(options, report, numbersSums);
}

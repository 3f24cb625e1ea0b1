//===- AnalyseLoops.cpp - Verdicts of loops -*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Baechi/Transforms/Loops/Passes.h"
#include "LoopModel.h"
#include "mlir/IR/Builders.h"

namespace baechi {
#define GEN_PASS_DEF_ANALYSELOOPS
#include "Baechi/Transforms/Loops/Passes.h.inc"
} // namespace baechi

using namespace mlir;
using namespace baechi;

static LoopVerdictAttr attributeOf(ForeachOp op, const LoopModel &model,
                                   const loops::Verdict &verdict) {
  Builder builder(op.getContext());
  auto numbers = [&](const auto &of) -> DenseI64ArrayAttr {
    if (of.empty())
      return nullptr;
    return builder.getDenseI64ArrayAttr(
        SmallVector<int64_t>(of.begin(), of.end()));
  };
  SmallVector<Attribute> dependences;
  for (const loops::Dependence &each : verdict.dependences) {
    SmallVector<int64_t> least, most;
    for (const loops::Distance &distance : each.distances) {
      least.push_back(distance.least.value_or(ShapedType::kDynamic));
      most.push_back(distance.most.value_or(ShapedType::kDynamic));
    }
    const loops::Access &from = model.loop.accesses[each.from];
    const loops::Access &to = model.loop.accesses[each.to];
    dependences.push_back(DependenceAttr::get(
        op.getContext(), from.array, loops::text(model.loop, from),
        loops::text(model.loop, to), builder.getDenseI64ArrayAttr(least),
        builder.getDenseI64ArrayAttr(most)));
  }
  return LoopVerdictAttr::get(
      op.getContext(), static_cast<LoopScheme>(verdict.scheme),
      numbers(verdict.keys), numbers(verdict.form), numbers(verdict.reduced),
      dependences.empty() ? nullptr : builder.getArrayAttr(dependences));
}

namespace {
struct AnalyseLoops : public baechi::impl::AnalyseLoopsBase<AnalyseLoops> {
  void runOnOperation() override {
    WalkResult walked = getOperation()->walk([](ForeachOp op) {
      return failed(analyse(op)) ? WalkResult::interrupt()
                                 : WalkResult::advance();
    });
    if (walked.wasInterrupted())
      signalPassFailure();
  }

  static LogicalResult analyse(ForeachOp op) {
    LoopModel model = modelOf(op);
    for (unsigned key = 0; key < op.getNumKeys(); ++key)
      if (op.getLowers()[key] == op.getUppers()[key] &&
          op.getLowers()[key] != ShapedType::kDynamic) {
        loops::Verdict independent;
        independent.scheme = loops::Scheme::Independent;
        op.setVerdictAttr(attributeOf(op, model, independent));
        op.emitRemark("independent: there are no entries");
        return success();
      }
    if (failed(checkPositions(model)))
      return failure();
    loops::Verdict verdict = loops::analyse(model.loop);
    op.setVerdictAttr(attributeOf(op, model, verdict));
    InFlightDiagnostic remark = op.emitRemark();
    remark << loops::explain(model.loop, verdict);
    if (!verdict.obstacle)
      return success();
    auto [first, second] = *verdict.obstacle;
    for (int32_t access : {first, second}) {
      remark.attachNote(model.operations[access]->getLoc())
          << loops::text(model.loop, model.loop.accesses[access]) << " here";
      if (first == second)
        break;
    }
    return success();
  }

  /// What is wrong with the loop is wrong with one of its accesses.
  static LogicalResult checkPositions(const LoopModel &model) {
    for (auto [access, operation] :
         llvm::zip(model.loop.accesses, model.operations)) {
      loops::Loop one = model.loop;
      one.accesses = {access};
      if (std::string wrong = loops::check(one); !wrong.empty())
        return operation->emitOpError() << wrong;
    }
    return success();
  }
};
} // namespace

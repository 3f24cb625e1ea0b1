//===- Explain.cpp - Why an operator is where it is -------------*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Baechi/Placement/Study/Explain.h"
#include "Baechi/Analysis/MachineAttr.h"
#include "Baechi/Analysis/PlacementProblem.h"
#include "Baechi/Transforms/Passes.h"

namespace baechi {
#define GEN_PASS_DEF_EXPLAIN
#include "Baechi/Transforms/Passes.h.inc"
} // namespace baechi

using namespace mlir;
using namespace baechi;

namespace {
struct Explain : public baechi::impl::ExplainBase<Explain> {
  using ExplainBase::ExplainBase;

  /// A bare word is a pattern of names: --baechi-explain=layer1/*.
  LogicalResult
  initializeOptions(StringRef options,
                    function_ref<LogicalResult(const Twine &)> error) override {
    if (!options.empty() && !options.contains('='))
      return Pass::initializeOptions(("name=" + options).str(), error);
    return Pass::initializeOptions(options, error);
  }

  void runOnOperation() override {
    std::optional<placement::Machine> target =
        machineOf(getOperation(), machine);
    FailureOr<FunctionOpInterface> step = findStep(getOperation());
    if (!target || failed(step))
      return signalPassFailure();
    FailureOr<StepGraph> graph = buildStepGraph(*step);
    if (failed(graph))
      return signalPassFailure();
    FailureOr<placement::Placement> placed = readPlacement(*graph, *target);
    if (failed(placed))
      return signalPassFailure();
    placement::Problem problem{graph->graph, *target};
    if (auto broken = placement::verify(problem, *placed); !broken.empty()) {
      emitError(step->getLoc())
          << "the placement is not valid: " << broken.front()
          << "; run --baechi-place again";
      return signalPassFailure();
    }
    std::vector<int32_t> found;
    if (std::string error =
            placement::findOperators(problem.graph, name, found);
        !error.empty()) {
      emitError(step->getLoc()) << error;
      return signalPassFailure();
    }
    placement::Explainer explainer(problem, *placed);
    auto say = [&](Location loc, StringRef text) {
      emitRemark(loc) << text.rtrim();
    };
    if (found.size() > 1)
      say(step->getLoc(),
          placement::explanationText(problem, explainer.explainSet(found)));
    for (int32_t id : found) {
      Operation *op = graph->operation(id);
      say(op ? op->getLoc() : step->getArgument(id).getLoc(),
          placement::explanationText(problem, explainer.explain(id)));
    }
    markAllAnalysesPreserved();
  }
};
} // namespace

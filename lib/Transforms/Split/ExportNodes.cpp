//===- ExportNodes.cpp - A model as a graph for machines of nodes ---------===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Baechi/Analysis/Program.h"
#include "Baechi/Placement/Io/AlternativesFile.h"
#include "Baechi/Transforms/Passes.h"
#include "Describe.h"
#include "NodesGraph.h"
#include "mlir/IR/Remarks.h"

namespace baechi {
#define GEN_PASS_DEF_EXPORTNODES
#include "Baechi/Transforms/Passes.h.inc"
} // namespace baechi

using namespace mlir;
using namespace baechi;
using namespace baechi::split;

namespace {
struct ExportNodes : public baechi::impl::ExportNodesBase<ExportNodes> {
  using ExportNodesBase::ExportNodesBase;

  void runOnOperation() override {
    if (failed(exportStep()))
      signalPassFailure();
  }

private:
  /// What was taken for the batch: a person sees whether it is.
  static void remarkBatch(func::FuncOp step, const BatchRoles &batch) {
    for (const Cut &cut : batch.plan.cuts)
      remark::passed(step.getLoc(), remark::RemarkOpts::name("batch")
                                        .category("baechi-export-nodes")
                                        .function(step.getName()))
          << remark::metric("Along", describePlace(step, cut))
          << remark::metric("Rows", cut.extent())
          << remark::metric("Parts", batch.parts);
  }

  LogicalResult exportStep() {
    FailureOr<func::FuncOp> step = findFuncStep(getOperation());
    if (failed(step))
      return failure();
    auto error = [&] { return emitError(step->getLoc()); };
    if (file.empty())
      return error() << "no file for the graph; name one (file=)";
    if (parts == 0)
      return error() << "parts=0: a batch has one part or more";
    NodesOptions options;
    options.kind = kind;
    options.rooflines = defaultRooflines();
    for (unsigned count : pieces) {
      if (count < 2)
        return error() << "pieces=" << count << ": ways have two and more";
      if (llvm::is_contained(options.pieces, count))
        return error() << "pieces=" << count << " is there twice";
      options.pieces.push_back(count);
    }
    if (!roofline.empty()) {
      std::string wrong;
      auto given = parseRooflines(roofline, wrong);
      if (!given)
        return error() << wrong;
      options.rooflines = std::move(*given);
    }
    if (llvm::none_of(options.rooflines, [&](const Roofline &each) {
          return each.kind == options.kind;
        }))
      return error() << "no roofline of kind '" << options.kind
                     << "'; describe it with roofline=";
    FailureOr<BatchRoles> batch = findBatchRoles(*step, parts);
    if (failed(batch))
      return failure();
    remarkBatch(*step, *batch);
    NodesGraph made = nodesGraph(*batch, options);
    std::string text;
    std::string wrong =
        placement::formatAlternatives(made.graph, made.alternatives, text);
    if (wrong.empty())
      wrong = placement::writeTextFile(file, text);
    return wrong.empty() ? success() : LogicalResult(error() << wrong);
  }
};
} // namespace

//===- CutAdvice.cpp - The cut that makes a step fit ----------------------===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Where a step fits neither as it is nor in micro-batches, cuts of what needs
/// most are tried, into ever more pieces: of the operations that this operator
/// was formed of, alone and with what makes its operands, as what windows read
/// is cut by itself.
///
//===----------------------------------------------------------------------===//

#include "Baechi/Analysis/LeastMemory.h"
#include "Baechi/Analysis/Program.h"
#include "Baechi/Driver/Compilation.h"
#include "Baechi/Placement/Model/Pool.h"
#include "Baechi/Transforms/Passes.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Pass/PassManager.h"
#include "llvm/ADT/SetVector.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/Support/FormatVariadic.h"

using namespace mlir;
using namespace baechi;

namespace {
/// So many cuts are formed at most, and so many of these planned.
constexpr int kMostFormed = 16, kMostPlanned = 4;
/// So many operations are cut, the largest.
constexpr size_t kMostOperations = 3;

/// What can be named in the option `split`.
struct Cuttable {
  std::string name;
  RankedTensorType type;
};

/// The names that a step's operator has in the model it was formed of.
llvm::StringSet<> namesWithin(Operation *op) {
  llvm::StringSet<> names;
  names.insert(nameOf(op));
  if (func::FuncOp kernel = kernelOf(op))
    kernel.walk([&](Operation *inner) { names.insert(nameOf(inner)); });
  names.erase("");
  return names;
}

/// The operator of \p formed that needs most.
Operation *neediest(ModuleOp formed) {
  FailureOr<func::FuncOp> step = findFuncStep(formed);
  FailureOr<StepGraph> graph = failure();
  if (succeeded(step))
    graph = buildStepGraph(*step);
  if (failed(graph) || graph->graph.ops.empty())
    return nullptr;
  return graph->operation(leastMemory(*graph).op);
}

/// What of a model can be cut.
class Cuttables {
public:
  explicit Cuttables(FunctionOpInterface step) {
    unsigned arguments = step.getNumArguments();
    SmallVector<std::string> names = namesOf(step);
    for (auto [number, op] : llvm::enumerate(operatorsOf(step))) {
      if (op->getNumResults() == 0 || isa<tensor::EmptyOp>(op) ||
          op->hasTrait<OpTrait::ConstantLike>())
        continue;
      auto type = dyn_cast<RankedTensorType>(op->getResult(0).getType());
      if (type && type.hasStaticShape())
        all.push_back({nameOf(op), {names[arguments + number], type}});
    }
    llvm::stable_sort(all, [](const auto &a, const auto &b) {
      return tensorBytes(a.second.type, false) >
             tensorBytes(b.second.type, false);
    });
  }

  /// Of those that \p op was formed of, the largest.
  std::vector<Cuttable> of(Operation *op, size_t most) const {
    llvm::StringSet<> names = namesWithin(op);
    std::vector<Cuttable> found;
    for (const auto &[name, cuttable] : all)
      if (found.size() < most && names.contains(name))
        found.push_back(cuttable);
    return found;
  }

private:
  /// The name, which several may have, and how this one is called.
  std::vector<std::pair<std::string, Cuttable>> all;
};

/// Cuts of \p cut along dimension \p dim, where they have so many elements.
std::vector<std::string> rulesFor(ArrayRef<Cuttable> cut, size_t dim,
                                  int64_t pieces) {
  std::vector<std::string> rules;
  for (const Cuttable &each : cut)
    if (static_cast<int64_t>(dim) < each.type.getRank() &&
        each.type.getDimSize(dim) >= pieces)
      rules.push_back(llvm::formatv("{0}={1}:{2}", each.name, dim, pieces));
  return rules;
}
} // namespace

std::string Compilation::adviseCut() {
  std::string advice;
  (void)quietly([&] {
    Operation *most = neediest(hostCompiler->module());
    OwningOpRef<ModuleOp> inlined = uncut->clone();
    PassManager passes(inlined->getContext());
    passes.addPass(createInlineStep());
    if (!most || failed(passes.run(*inlined)))
      return failure();
    FailureOr<FunctionOpInterface> step = findStep(*inlined);
    if (failed(step))
      return failure();
    Cuttables cuttables(*step);
    std::vector<Cuttable> own = cuttables.of(most, kMostOperations), makers;
    llvm::SetVector<Operation *> made; // operands may be parts of one
    for (Value operand : most->getOperands())
      if (Operation *maker = rootOf(operand).getDefiningOp())
        made.insert(maker);
    for (Operation *maker : made)
      llvm::append_range(makers, cuttables.of(maker, 1));
    int formed = 0, planned = 0;
    for (int64_t pieces : {2, 4, 8, 16})
      for (const Cuttable &each : own)
        for (size_t dim = 0, rank = each.type.getRank(); dim < rank; ++dim)
          for (bool isAlone : {true, false}) {
            std::vector<Cuttable> cut{each};
            if (!isAlone)
              llvm::append_range(cut, makers);
            std::vector<std::string> rules = rulesFor(cut, dim, pieces);
            if (each.type.getDimSize(dim) < pieces ||
                (!isAlone && rules.size() < 2))
              continue;
            if (listener.isStopped() || ++formed > kMostFormed ||
                planned >= kMostPlanned)
              return failure();
            if (!fitsCutBy(rules, planned))
              continue;
            advice = llvm::formatv("cut in {0} pieces along dimension {1} it "
                                   "fits: split={2}",
                                   pieces, dim, llvm::join(rules, " split="));
            return success();
          }
    return failure();
  });
  return advice;
}

bool Compilation::fitsCutBy(ArrayRef<std::string> rules, int &planned) {
  SplitChoice choice = firstChoice;
  llvm::append_range(choice.asked, rules);
  // With a pool beside it arguments need not stay.
  if (placement::poolsOf(target).empty()) {
    std::optional<int64_t> least = leastBytesOnHost(choice);
    if (least && *least > placement::computingBytes(target))
      return false;
  }
  FailureOr<std::unique_ptr<HostCompiler>> cut = form(choice, *uncut);
  if (failed(cut))
    return false;
  ++planned;
  CompileOptions options = asked;
  options.budget = "0";
  return succeeded((*cut)->predict(target, options, /*mayRewrite=*/true));
}

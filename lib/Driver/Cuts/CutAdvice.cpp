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

#include "Baechi/Analysis/Program.h"
#include "Baechi/Driver/Compilation/Compilation.h"
#include "Baechi/Placement/Model/Pool.h"
#include "Baechi/Transforms/Passes.h"
#include "Cuttables.h"
#include "mlir/Pass/PassManager.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FormatVariadic.h"

using namespace mlir;
using namespace baechi;

/// So many cuts are formed at most, and so many of these planned.
static constexpr int kMostFormed = 16, kMostPlanned = 4;
/// So many operations are cut, the largest.
static constexpr size_t kMostOperations = 3;

std::string Compilation::adviseCut() {
  std::string advice;
  (void)quietly([&] {
    std::optional<Neediest> most = neediestOf(hostCompiler->module(), target);
    std::optional<Cuttables> cuttables = findCuttables();
    if (!most || !most->op || !cuttables)
      return failure();
    std::vector<Cuttable> own = cuttables->of(most->op, kMostOperations),
                          makers = cuttables->ofMakers(most->op);
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

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

#include "Baechi/Driver/Cuts/CutAdvice.h"
#include "Baechi/Driver/Cuts/FittingCuts.h"
#include "Baechi/Placement/Model/Pool.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FormatVariadic.h"

using namespace mlir;
using namespace baechi;

/// So many cuts are formed at most, and so many of these planned.
static constexpr int kMostFormed = 16, kMostPlanned = 4;
/// So many operations are cut, the largest.
static constexpr size_t kMostOperations = 3;

/// Whether the step fits where it is cut as \p rules say, too. \p planned:
/// counts those whose plans were looked for.
static bool fitsCutBy(const ModelForms &forms, SplitChoice choice,
                      ArrayRef<std::string> rules, int &planned) {
  llvm::append_range(choice.asked, rules);
  // With a pool beside it arguments need not stay.
  if (placement::poolsOf(forms.machine()).empty()) {
    std::optional<int64_t> least = forms.leastBytesOnHost(choice);
    if (least && *least > placement::computingBytes(forms.machine()))
      return false;
  }
  FailureOr<std::unique_ptr<HostCompiler>> cut = forms.form(choice);
  if (failed(cut))
    return false;
  ++planned;
  return succeeded(forms.predictFitting(**cut));
}

std::string baechi::adviseCut(const ModelForms &forms, ModuleOp whole,
                              const SplitChoice &first) {
  std::string advice;
  (void)forms.quietly([&] {
    std::optional<Neediest> most = neediestOf(whole, forms.machine());
    std::optional<Cuttables> cuttables = findCuttables(forms.model());
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
            if (forms.heard().isStopped() || ++formed > kMostFormed ||
                planned >= kMostPlanned)
              return failure();
            if (!fitsCutBy(forms, first, rules, planned))
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

std::unique_ptr<HostCompiler>
baechi::fewestMicroBatches(const ModelForms &forms, unsigned above,
                           unsigned &pieces) {
  std::unique_ptr<HostCompiler> found;
  std::optional<int64_t> before;
  bool isLast = false;
  for (unsigned count : {2, 4, 8, 16}) {
    if (count <= above || forms.heard().isStopped())
      continue;
    SplitChoice choice{.pieces = count,
                       .reductions = true,
                       .chained = true,
                       .asked = forms.options().split};
    // Where the batch is too small, or a cut that is asked for has another
    // number of pieces, these are not.
    (void)forms.quietly([&] {
      std::optional<int64_t> least = forms.leastBytesOnHost(choice);
      bool isTooMuch =
          least && *least > placement::computingBytes(forms.machine());
      // What needs most is cut no further, nor is it in more pieces.
      isLast = isTooMuch && before && *least >= *before;
      before = least;
      if (isTooMuch)
        return failure();
      FailureOr<std::unique_ptr<HostCompiler>> formed = forms.form(choice);
      if (succeeded(formed) && forms.fits(**formed))
        found = std::move(*formed);
      return success(found != nullptr);
    });
    if (found)
      pieces = count;
    if (found || isLast)
      break;
  }
  return found;
}

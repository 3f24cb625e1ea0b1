//===- Pieces.cpp - Whether operators are cut into pieces -----------------===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Baechi/Driver/Compilation/Compilation.h"
#include "Baechi/Driver/Cuts/OtherCuts.h"
#include "Baechi/Pipelines/Pipelines.h"
#include "Baechi/Placement/Io/Files.h"
#include "mlir/Pass/PassManager.h"

using namespace mlir;
using namespace baechi;

bool baechi::placesParts(const std::string &file, StringRef part) {
  std::vector<placement::NamedDevice> placed;
  return !file.empty() &&
         placement::readPlacementByName(file, placed).empty() &&
         llvm::any_of(placed, [&](const placement::NamedDevice &each) {
           return StringRef(each.name).contains(part);
         });
}

void Compilation::settleSplits() {
  splitsAreSaid = asked.splits != "auto";
  if (splitsAreSaid)
    return;
  bool isCutByOthers = asked.replicas > 1 || !asked.split.empty();
  asked.splits = isCutByOthers || hasDeviceOf("cuda") ? "none" : "exact";
  // Pins are of whole operators; a placement's are those of the whole step, or
  // of the one in pieces.
  mayCut = asked.pins.empty();
  if (!asked.placement.empty())
    (placesParts(asked.placement, ".piece") ? mayStayWhole : mayCut) = false;
}

LogicalResult Compilation::foldSums() {
  PassManager passes(forms.model().getContext());
  populateFolding(passes, asked);
  return passes.run(forms.model());
}

void Compilation::compareCuts() {
  if (std::exchange(cutsAreCompared, true))
    return;
  addOtherCuts(forms, compilers);
  leaveOutPieces();
}

void Compilation::leaveOutPieces() {
  // Others are placed, too: what they are compared by is not known before.
  if (asked.splits != "exact" || asked.objective != "makespan" ||
      !mayStayWhole || compilers.size() < 2)
    return;
  Phase phase(listener, "comparing cuts");
  std::optional<int64_t> whole = predictQuietly(forms, *compilers.front());
  if (!whole)
    return; // It does not fit; others may.
  for (size_t number = 1; number < compilers.size();) {
    PieceReport report;
    report.cut = compilers[number]->splits();
    report.isCompared = report.isEstimated = true;
    if (!report.cut.classes.empty()) {
      report.wholeNs = whole;
      report.piecesNs = predictQuietly(forms, *compilers[number]);
      if (report.piecesNs && *report.piecesNs < *whole) {
        ++number;
        continue;
      }
    }
    if (splitsAreSaid)
      leftOut = std::move(report);
    compilers.erase(compilers.begin() + number);
  }
}

void Compilation::reportPieces(size_t best,
                               llvm::ArrayRef<Candidate> candidates) {
  compiled.manifest["cutting"] = llvm::json::Array(compilers[best]->cutting());
  size_t whole = compilers.size(), cut = compilers.size();
  for (auto [number, compiler] : llvm::enumerate(compilers))
    if (compiler->splits().classes.empty())
      whole = number;
    else if (cut == compilers.size() || number == best)
      cut = number;
  if (cut == compilers.size() && compilers.size() < 2) {
    pieces = std::move(leftOut);
    if (pieces) // Else nothing was asked for.
      compiled.manifest["pieces"] = pieces->toJson();
    return;
  }
  PieceReport report;
  report.isCompared = whole < compilers.size() && compilers.size() > 1;
  if (report.isCompared) {
    report.wholeNs = candidates[whole].predictedNs;
    report.triedWholeNs = candidates[whole].triedNs;
  }
  if (cut < compilers.size()) {
    report.cut = compilers[cut]->splits();
    report.piecesNs = candidates[cut].predictedNs;
    report.triedPiecesNs = candidates[cut].triedNs;
    report.isKept = cut == best;
  }
  compiled.manifest["pieces"] = report.toJson();
  pieces = std::move(report);
}

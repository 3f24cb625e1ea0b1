//===- ShortestCut.cpp - The cut with the shortest step -------------------===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Each piece needs less, so that less is computed again or waits in a pool;
/// but there are more of them. Which number is best, their predictions tell.
/// That the whole step is no shorter with less memory takes that all of them
/// are looked at: a cut that fits less fits more, too.
///
//===----------------------------------------------------------------------===//

#include "Baechi/Driver/Cuts/FittingCuts.h"
#include <algorithm>

using namespace mlir;
using namespace baechi;

void FittingCuts::compareUntil(int64_t ns, bool instead, int64_t most) {
  enoughNs = ns;
  mostNs = most;
  isInstead = instead;
  if (!instead)
    return;
  std::erase_if(ways, isLastResort);
  std::rotate(ways.begin(), ways.begin() + 1, ways.end());
}

std::optional<FittingCut> FittingCuts::shortest() {
  auto isStopped = [&] { return forms.heard().isStopped(); };
  auto isEnough = [&](const FittingCut &cut) {
    return double(cut.predictedNs) <= kAboutAsLong * double(*enoughNs) &&
           (cut.unproven.empty() || !prefersProven);
  };
  auto mayGoOn = [&] {
    bool isNeeded = waiting.empty() && !isInstead;
    return isNeeded ||
           (operatorsFormed < kMostOperators && !isLastResort(ways[numFormed]));
  };
  while (numFormed < ways.size() && !isStopped() &&
         llvm::none_of(waiting, isEnough) && mayGoOn())
    formNext();
  if (waiting.empty() || isStopped())
    return std::nullopt;
  // What is only compared with the whole step has to gain by that.
  auto price = [&](const FittingCut &cut) {
    bool isProven = cut.unproven.empty();
    return std::pair(prefersProven && !isProven,
                     double(cut.predictedNs) * (isProven ? 1 : kAboutAsLong));
  };
  auto best = std::min_element(waiting.begin(), waiting.end(),
                               [&](const FittingCut &a, const FittingCut &b) {
                                 return price(a) < price(b);
                               });
  FittingCut cut = std::move(*best);
  waiting.erase(best);
  return cut;
}

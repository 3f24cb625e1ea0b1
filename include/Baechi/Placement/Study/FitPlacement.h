//===- FitPlacement.h - Placements of graphs that do not fit ----*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// A graph that does not fit its machine as it is, rewritten so that it does,
/// and placed: what runs again and what waits in a pool are operators of the
/// graph that is written out, so that all which reads placements reads these.
///
//===----------------------------------------------------------------------===//
#ifndef BAECHI_PLACEMENT_STUDY_FITPLACEMENT_H
#define BAECHI_PLACEMENT_STUDY_FITPLACEMENT_H

#include "Baechi/Placement/Session/Place.h"
#include "Baechi/Placement/Study/FitSweep.h"

namespace baechi::placement {

struct FitPlan {
  Problem problem;    ///< the graph as it is written out, on the whole machine
  PlaceResult result; ///< of it, or an error
  FitSweep about;     ///< of the graph as it is; without points
  std::string by;     ///< the means: as FitPoint::bestName()
  FitWay way;         ///< without its plan
  bool isOfSeveral = false; ///< more than one device computes
};

/// The shortest step that is found of \p problem, which does not fit as it is:
/// on one device by the means of fitSweep(), at limits that are the same for
/// all memories, so that less memory gives no shorter step than more, and which
/// may miss what fitSweep() finds at the memory itself; of up to 24 operators
/// and tensors at that. On several devices by what runs again, placed by \p
/// options.
FitPlan fitPlacement(const Problem &problem, const PlaceOptions &options,
                     const std::vector<int32_t> &sums = {});

} // namespace baechi::placement

#endif // BAECHI_PLACEMENT_STUDY_FITPLACEMENT_H

//===- Judge.h - How good a given placement is ------------------*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef BAECHI_PLACEMENT_STUDY_JUDGE_H
#define BAECHI_PLACEMENT_STUDY_JUDGE_H

#include "Baechi/Placement/Session/Place.h"

namespace baechi::placement {

/// What `place` says of its own answer, of a placement from elsewhere: loads,
/// memory, the lower bound, the best single device. An error that lists the
/// violations when it is not valid. Of \p options only the objective counts.
PlaceResult judge(const Problem &problem, const Placement &placement,
                  const PlaceOptions &options = {});

} // namespace baechi::placement

#endif // BAECHI_PLACEMENT_STUDY_JUDGE_H

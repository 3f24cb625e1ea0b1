//===- Critical.h - What a placement's makespan hangs on --------*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef BAECHI_PLACEMENT_STUDY_CRITICAL_H
#define BAECHI_PLACEMENT_STUDY_CRITICAL_H

#include "Baechi/Placement/Model/Placement.h"

namespace baechi::placement {

/// What of a placement lies on its critical path.
struct Critical {
  std::vector<uint8_t> op;       ///< per operator
  std::vector<uint8_t> transfer; ///< per transfer of the placement
};

/// \p problem must have passed `check`.
Critical criticalParts(const Problem &problem, const Placement &placement);

} // namespace baechi::placement

#endif // BAECHI_PLACEMENT_STUDY_CRITICAL_H

//===- Critical.h - What a placement's makespan hangs on --------*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef BAECHI_LIB_PLACEMENT_CRITICAL_H
#define BAECHI_LIB_PLACEMENT_CRITICAL_H

#include "Model/Model.h"

namespace baechi::placement {

/// What of a placement lies on its critical path.
struct Critical {
  std::vector<uint8_t> op;       ///< per operator
  std::vector<uint8_t> transfer; ///< per transfer of the placement
};

/// \p model is that of the placement's problem.
Critical criticalParts(const Model &model, const Placement &placement);

} // namespace baechi::placement

#endif // BAECHI_LIB_PLACEMENT_CRITICAL_H

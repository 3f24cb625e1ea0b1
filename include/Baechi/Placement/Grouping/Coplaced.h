//===- Coplaced.h - What bounded co-placement keeps together ----*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef BAECHI_PLACEMENT_GROUPING_COPLACED_H
#define BAECHI_PLACEMENT_GROUPING_COPLACED_H

#include "Baechi/Placement/Model/Problem.h"

namespace baechi::placement {

/// The groups that bounded co-placement (Jeon et al., SoCC 2020, section 3.3)
/// makes of a problem: a number per operator, equal for operators that should
/// be on one device. \p error is set, and the result empty, when the problem is
/// not well formed.
std::vector<int32_t> coplacedGroups(const Problem &problem, std::string &error);

} // namespace baechi::placement

#endif // BAECHI_PLACEMENT_GROUPING_COPLACED_H

//===- FollowPartials.h - What partial results run through ------*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef BAECHI_LIB_TRANSFORMS_SPLIT_FOLLOWPARTIALS_H
#define BAECHI_LIB_TRANSFORMS_SPLIT_FOLLOWPARTIALS_H

#include "SplitPlan.h"

namespace baechi::split {

/// Partial results are joined late: what alone reads one, and only moves its
/// elements or joins it with another tensor by the same combiner, is done with
/// each part. So the gradients of a weight that many steps of a recurrence use
/// are added up within each piece, and their sums joined once.
void followPartials(Cut &cut, mlir::Block &block, const SplitPlan &taken);

} // namespace baechi::split

#endif // BAECHI_LIB_TRANSFORMS_SPLIT_FOLLOWPARTIALS_H

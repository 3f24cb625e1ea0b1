//===- Meetings.h - Where pieces wait for each other ------------*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef BAECHI_LIB_TRANSFORMS_SPLIT_MEETINGS_H
#define BAECHI_LIB_TRANSFORMS_SPLIT_MEETINGS_H

#include "SplitPlan.h"

namespace baechi::split {

/// Pieces that follow each other meet where one reads what others are made
/// into: the statistics of a batch normalisation, a sort, the weights of a
/// second step. The step stays right, and a pipeline is drained there.
void findMeetings(Cut &cut, mlir::Block &block);

} // namespace baechi::split

#endif // BAECHI_LIB_TRANSFORMS_SPLIT_MEETINGS_H

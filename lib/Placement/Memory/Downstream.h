//===- Downstream.h - The order of pipelines --------------------*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef BAECHI_LIB_PLACEMENT_MEMORY_DOWNSTREAM_H
#define BAECHI_LIB_PLACEMENT_MEMORY_DOWNSTREAM_H

#include "Schedule/Schedule.h"

namespace baechi::placement::memory {

/// Priorities by which work that has been begun goes before new work, as in the
/// schedule "one forward, one backward" of pipelines: of nodes that other
/// devices wait for, the one with the longest path behind it; then all others,
/// which fill what is left (Qi et al., Zero Bubble Pipeline Parallelism, arXiv
/// 2401.10241, section 2). Larger is more urgent. The devices can talk.
std::vector<int64_t> downstreamFirst(const Model &model,
                                     const Assignment &device);

} // namespace baechi::placement::memory

#endif // BAECHI_LIB_PLACEMENT_MEMORY_DOWNSTREAM_H

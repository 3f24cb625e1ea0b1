//===- LeastMemory.h - What no plan of a step goes under --------*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef BAECHI_ANALYSIS_LEASTMEMORY_H
#define BAECHI_ANALYSIS_LEASTMEMORY_H

#include "Baechi/Analysis/PlacementProblem.h"
#include "Baechi/Placement/Recompute/Recompute.h"

namespace baechi {

/// What no plan of a step on one device goes under without a pool, whatever
/// runs again: what is resident, and what the operator that needs most reads,
/// makes and works in. A result that may be written in an operand's place, and
/// parts that may lie in what is put together of them, are counted once.
/// \p graph: has operators.
placement::MemoryFloor leastMemory(const StepGraph &graph);
/// The same for each operator, as if it were that which needs most.
std::vector<int64_t> leastMemoryByOperator(const StepGraph &graph);

} // namespace baechi

#endif // BAECHI_ANALYSIS_LEASTMEMORY_H

//===- Sums.h - Sums whose operands come one after the other ----*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// A sum of many operands, such as a gradient's over the steps of a recurrence,
/// holds all of them at once. As additions of two, one after the other, it
/// holds an operand beside two sums. A graph file does not say what an operator
/// computes: that it is a sum, somebody who knows says.
///
//===----------------------------------------------------------------------===//
#ifndef BAECHI_PLACEMENT_RECOMPUTE_SUMS_H
#define BAECHI_PLACEMENT_RECOMPUTE_SUMS_H

#include "Baechi/Placement/Model/Problem.h"

#include <span>
#include <string>
#include <vector>

namespace baechi::placement {

/// Why one of \p sums is not the sum of the tensors that it reads; empty: all
/// may be.
std::string whyNoSums(const Graph &graph, std::span<const int32_t> sums);

/// Those of \p sums that read two tensors or fewer: nothing of them waits for
/// something else to be added up.
std::vector<int32_t> sumsOfTwo(const Graph &graph,
                               std::span<const int32_t> sums);

/// The graph with each of \p sums, of which whyNoSums() says nothing, as
/// additions of two in the order of its edges: NAME#1 to NAME#k-2, and NAME,
/// which has its place; with more of # where the graph has one of these names.
/// The time is that of the bytes that are read and written, as the sum's is.
/// Sums of two stay as they are.
Graph withSumsInTurn(const Graph &graph, std::span<const int32_t> sums);

} // namespace baechi::placement

#endif // BAECHI_PLACEMENT_RECOMPUTE_SUMS_H

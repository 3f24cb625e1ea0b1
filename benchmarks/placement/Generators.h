//===- Generators.h - Training graphs of any size ---------------*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Deterministic graphs to measure by: the same name and size give the same
/// graph everywhere.
///
//===----------------------------------------------------------------------===//
#ifndef BAECHI_BENCHMARKS_GENERATORS_H
#define BAECHI_BENCHMARKS_GENERATORS_H

#include "Baechi/Placement/Model/Problem.h"

namespace baechi::placement::benchmarks {

/// A translation model of recurrent layers (Wu et al., "Google's Neural Machine
/// Translation System", arXiv 1609.08144), unrolled: one bidirectional and
/// three more encoder layers, four decoder layers with attention, hidden size
/// 1024, batch 64. \p steps is the length of both sentences; about 325
/// operators a step. Backward operators are colocated with forward ones.
Graph gnmtLike(int32_t steps);

/// A transformer (Vaswani et al., arXiv 1706.03762) of \p layers decoder
/// layers, eight heads one by one, width 1024, 128 tokens, that accumulates
/// the gradients of \p microBatches.
Graph transformerLike(int32_t layers, int32_t microBatches);

/// Layers of \p width operators on average, each of which reads one to three
/// tensors of the few layers before it; every fourth has a parameter. Ends
/// once the forward pass has \p forwardOperators.
Graph randomLayered(int32_t forwardOperators, int32_t width, uint64_t seed);

/// Names for `generate`: "gnmt", "transformer", "random".
const std::vector<std::string> &generatorNames();

/// The smallest graph of a family that has at least \p operators, grown as such
/// models grow: longer sentences; more layers and more micro-batches; more
/// and wider layers. Empty for an unknown name.
Graph generate(const std::string &name, int32_t operators);

/// \p count devices of kind "gpu" and \p memory bytes each; transfers take
/// 134 us + 0.1754 ns a byte as on data/graphs/machine_4x8GiB.json.
Machine uniformMachine(int32_t count, int64_t memory,
                       LinkModel linkModel = LinkModel::Sequential);

} // namespace baechi::placement::benchmarks

#endif // BAECHI_BENCHMARKS_GENERATORS_H

//===- Partitioner.h - Graph partitioning -----------------------*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// The problem of the placer "min-cut", and the face of what solves it. A
/// partitioner is handed to `place` by its caller: the placement library links
/// none.
///
//===----------------------------------------------------------------------===//
#ifndef BAECHI_PLACEMENT_PLACERS_PARTITIONER_H
#define BAECHI_PLACEMENT_PLACERS_PARTITIONER_H

#include <cstdint>
#include <string>
#include <vector>

namespace baechi::placement {

/// Give every vertex a part, so that the edges between parts weigh little and
/// no part weighs much more than its share.
struct PartitionProblem {
  struct Edge {
    int32_t a;
    int32_t b; ///< > a
    int64_t weight;
  };
  std::vector<int64_t> weight; ///< per vertex, >= 0
  std::vector<Edge> edges;     ///< one a pair, sorted
  std::vector<int32_t> fixed;  ///< per vertex, its part; -1: any
  std::vector<double> share;   ///< per part, > 0, of all weight; they sum to 1
  /// A part may exceed its share by this part of it.
  double imbalance = 0.05;
};

class Partitioner {
public:
  virtual ~Partitioner() = default;
  virtual std::string name() const = 0;
  /// Fills \p part, one a vertex; returns an error, empty on success. Fixed
  /// vertices stay, the balance is a wish. Deterministic.
  virtual std::string partition(const PartitionProblem &problem,
                                std::vector<int32_t> &part) const = 0;
};

} // namespace baechi::placement

#endif // BAECHI_PLACEMENT_PLACERS_PARTITIONER_H

//===- Segments.h - What must happen between two operators ------*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// All that comes after an operator u and before an operator v runs between the
/// end of u and the start of v. On one device it takes the sum of the times;
/// what runs elsewhere is moved there or back. So a block of branches, as of
/// Inception, takes either all of its work or the transfers of what it reads
/// and makes: more than its critical path in either case.
///
//===----------------------------------------------------------------------===//
#ifndef BAECHI_LIB_PLACEMENT_BOUNDS_SEGMENTS_H
#define BAECHI_LIB_PLACEMENT_BOUNDS_SEGMENTS_H

#include "Model/Model.h"

#include <span>

namespace baechi::placement::bounds {

class Segments {
public:
  /// \p time: the shortest of every node; \p head: the longest path up to it.
  Segments(const Model &model, std::span<const int64_t> time,
           std::span<const int64_t> head);

  /// For every node of \p path, in the order of time, a bound of what comes
  /// before it: \p before is one that is known. Looks at segments between nodes
  /// of the path, the short ones first, as long as its effort lasts.
  std::vector<int64_t> raise(std::span<const int32_t> path,
                             std::vector<int64_t> before);

  /// No schedule has less time between the end of \p u and the start of \p v,
  /// which comes after it.
  int64_t between(int32_t u, int32_t v);

private:
  /// Longest paths, in ns, from the end of u and to the start of v.
  struct Around {
    int64_t time;
    int64_t head, away; ///< from u; and where u is on another device
    int64_t tail, back; ///< to v; and where v is on another device
  };

  template <typename Visit> void forEachEdge(int32_t node, Visit visit) const;
  void collect(int32_t u, int32_t v);
  void measure();
  bool fits(int64_t ns) const;

  const Model &model;
  std::span<const int64_t> time, head;
  std::vector<int64_t> moving;   ///< per tensor, over the fastest link
  int64_t signal = 0;            ///< of a control edge, over the quickest
  std::vector<int32_t> position; ///< per node, in topological order
  int64_t visits = 0;            ///< edges that were looked at
  // Of one segment: u, what is between in topological order, v.
  std::vector<int32_t> nodes;
  std::vector<Around> around;
  std::vector<int32_t> index, mark; ///< per node: in `nodes`; when it was seen
  int32_t stamp = 0;
};

} // namespace baechi::placement::bounds

#endif // BAECHI_LIB_PLACEMENT_BOUNDS_SEGMENTS_H

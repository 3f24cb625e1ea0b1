//===- Alternatives.h - Other ways to do operators --------------*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// What a graph file may state beside its operators: ways to do them in pieces,
/// or in one piece at another price. A choice of one way for every operator
/// gives an ordinary graph, in which a piece is an operator and a part of a
/// tensor that somebody reads is an output. The rules are those of
/// docs/formats.md; scripts/oracle/expand.py has them once more.
///
//===----------------------------------------------------------------------===//
#ifndef BAECHI_PLACEMENT_MODEL_ALTERNATIVES_H
#define BAECHI_PLACEMENT_MODEL_ALTERNATIVES_H

#include "Baechi/Placement/Model/Problem.h"

#include <string>
#include <vector>

namespace baechi::placement {

/// How pieces share a tensor: in slices along a dimension, or each has all of
/// it. Where there are more pieces than slices, those that follow each other
/// have the same slice, equally many each.
struct Cut {
  int32_t along = -1;         ///< dimension of the tensor; -1: not cut
  std::vector<int64_t> sizes; ///< extents of the slices along it

  bool operator==(const Cut &) const = default;
};

/// How the pieces of an operator make one of its outputs.
struct OutputCut {
  Cut cut;
  /// Each piece has a summand of all of it, and readers read the sum.
  bool isPartial = false;
  /// Bytes that a device fetches with each piece's part, and does not keep.
  int64_t extra = 0;
};

/// What the pieces of an operator read of a tensor.
struct InputCut {
  int32_t from = 0, output = 0;
  Cut cut;
  int64_t extra = 0; ///< as above, for each piece that reads
};

struct Piece {
  std::vector<std::pair<std::string, int64_t>> timeNs; ///< as an operator's
  int64_t scratch = 0;
  int64_t resident = 0;
};

/// One way to do an operator.
struct Alternative {
  std::string name;
  std::vector<Piece> pieces;
  std::vector<OutputCut> outputs; ///< one for each; empty: each piece has all
  std::vector<InputCut> inputs;   ///< what is not listed is read whole
  int64_t sumNs = 0; ///< adding a summand of a whole tensor to another
  /// So many groups of pieces hold the same parameters and exchange their
  /// updates, `exchange` bytes of each piece.
  int32_t replicas = 1;
  int64_t exchange = 0;
};

/// By operator; an operator without any has an empty list.
struct Alternatives {
  std::vector<std::vector<Alternative>> of;
  /// The extents of outputs, where they are stated.
  std::vector<std::vector<std::vector<int64_t>>> shapes;

  bool any() const {
    for (const auto &each : of)
      if (!each.empty())
        return true;
    return false;
  }
};

/// An alternative of each operator; -1: as the operator itself says.
using Ways = std::vector<int32_t>;

/// What is wrong with alternatives of a graph that `check` has nothing to say
/// about, one message each; empty when nothing is.
std::vector<std::string> checkAlternatives(const Graph &graph,
                                           const Alternatives &alternatives);

/// A graph in which operators are replaced by their pieces.
struct Expansion {
  struct Origin {
    int32_t op = 0;
    int32_t piece = -1;    ///< -1: an operator that stayed whole
    bool isHelper = false; ///< a sum or an exchange
  };
  Graph graph;
  std::vector<Origin> origins; ///< of each operator
};

/// Does the operators of \p graph in these \p ways. Returns an error, empty on
/// success: the graph would have more than a million operators, or ten million
/// parts of tensors.
std::string expand(const Graph &graph, const Alternatives &alternatives,
                   const Ways &ways, Expansion &expansion);

} // namespace baechi::placement

#endif // BAECHI_PLACEMENT_MODEL_ALTERNATIVES_H

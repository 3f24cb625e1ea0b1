//===- NodeWays.h - Operators in parts and in pieces ------------*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef BAECHI_LIB_TRANSFORMS_SPLIT_NODEWAYS_H
#define BAECHI_LIB_TRANSFORMS_SPLIT_NODEWAYS_H

#include "NodesGraph.h"
#include "TensorWays.h"

namespace baechi::split {

/// What parts of the batch, and pieces of them, take, hold and make.
class NodeWays {
public:
  NodeWays(const BatchRoles &batch, const NodesOptions &options);

protected:
  using Ways = llvm::SmallVector<placement::Alternative>;

  Role roleOf(int32_t id) const { return batch.roles[id]; }
  bool isParted() const { return batch.parts > 1; }
  /// Whether output \p output of an operator of a part is a summand.
  bool isSummand(int32_t id, int32_t output) const {
    return !batch.positionOf(id, output);
  }

  placement::Alternative way(llvm::StringRef word, int64_t count,
                             const placement::Operator &piece) const;
  std::vector<int64_t> extents(int32_t id, int32_t output) const;
  /// The extents of an output of a part, with the cut one by itself: a reshape
  /// may have joined it with others. Of summands there is one a piece.
  std::vector<int64_t> shapeOf(int32_t id, int32_t output) const;
  placement::Cut cutOf(int32_t id, int32_t output, int64_t count) const;
  /// A dimension of the tensor in the shape that the graph states; nothing for
  /// the batch's.
  std::optional<int32_t> stated(int32_t id, int32_t output, unsigned dim) const;
  placement::Cut tensorCut(int32_t id, int32_t output, unsigned dim,
                           int64_t count) const;
  /// Adding up two summands of \p bytes.
  int64_t sumNs(int64_t bytes) const;
  /// One of \p count equal pieces of an operator of parts.
  placement::Operator share(int32_t id, int64_t count) const;
  /// Ways `tensor/K` of what is one operator, \p op: all of \p members are
  /// cut, and their results.
  void addTensorWays(Ways &ways, const placement::Operator &op,
                     llvm::ArrayRef<int32_t> members) const;

  const BatchRoles &batch;
  const placement::Graph &whole;
  const NodesOptions &options;
  int64_t rows;         ///< of a part
  int64_t summands = 1; ///< what all numbers of pieces divide
  llvm::SmallVector<int64_t> pieces;
  std::vector<TensorWays> tensors;

private:
  bool addTensorOutputs(const TensorWays &tensor, int32_t id,
                        placement::Alternative &way) const;
  void shareTimes(int32_t id, int64_t count, const TensorWays *tensor,
                  placement::Operator &op) const;
};

} // namespace baechi::split

#endif // BAECHI_LIB_TRANSFORMS_SPLIT_NODEWAYS_H

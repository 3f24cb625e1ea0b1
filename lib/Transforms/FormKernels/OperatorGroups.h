//===- OperatorGroups.h - Operators that become kernels -*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef BAECHI_LIB_TRANSFORMS_FORMKERNELS_OPERATORGROUPS_H
#define BAECHI_LIB_TRANSFORMS_FORMKERNELS_OPERATORGROUPS_H

#include "mlir/IR/Block.h"
#include "mlir/IR/Operation.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/SetVector.h"
#include "llvm/ADT/SmallVector.h"
#include <optional>
#include <vector>

namespace baechi::formkernels {

/// What an operation reads: tensors that operators, arguments and large
/// constants provide, and the operations on the way there that are cloned into
/// kernels (OperatorKind::Cloned).
struct Reads {
  llvm::SetVector<mlir::Value> tensors;
  llvm::SetVector<mlir::Operation *> clones;
};
/// An operation for which `stop` holds is not cloned; its result is one of the
/// tensors.
Reads readsOf(mlir::Operation *op,
              llvm::function_ref<bool(mlir::Operation *)> stop = nullptr);

/// A partition of a block's operators whose groups depend on each other without
/// cycles, so that each can become one kernel. Starts with a group for each.
///
/// Keeps a topological order of the groups under merging as Pearce and Kelly do
/// under insertion of edges ("A Dynamic Topological Sort Algorithm for Directed
/// Acyclic Graphs", JEA 11, 2006): only groups between the two merged ones, in
/// that order, are looked at.
class OperatorGroups {
public:
  using Group = unsigned;

  /// Groups are not merged to ones that read and write more than `maxBuffers`
  /// tensors; 0: any number. Nor are those of different \p sides.
  explicit OperatorGroups(mlir::Block &block, unsigned maxBuffers = 0,
                          llvm::DenseMap<mlir::Operation *, int64_t> sides =
                              llvm::DenseMap<mlir::Operation *, int64_t>());

  /// The replica that a group computes for (ReplicaSides.h).
  std::optional<int64_t> sideOf(Group group) const;

  /// All operators in program order.
  llvm::ArrayRef<mlir::Operation *> operators() const { return all; }
  /// The operators that read a result of `op`, also through views.
  llvm::ArrayRef<mlir::Operation *> consumers(mlir::Operation *op) const {
    return edges.at(op).consumers;
  }
  llvm::ArrayRef<mlir::Operation *> producers(mlir::Operation *op) const {
    return edges.at(op).producers;
  }
  /// The group of `op`; nothing for what is no operator of the block.
  std::optional<Group> groupOf(mlir::Operation *op) const;
  llvm::ArrayRef<mlir::Operation *> members(Group group) const {
    return groups[group].members;
  }
  /// Place in program order, of any operation of the block.
  unsigned position(mlir::Operation *op) const { return positions.at(op); }

  /// Unites two groups under the number that is returned. Nothing happens when
  /// that would make a cycle, or when the search for one takes too long, or for
  /// too many buffers.
  std::optional<Group> merge(Group a, Group b);

  /// The members of each group, in program order; the groups in an order in
  /// which they can run.
  std::vector<std::pair<Group, llvm::SmallVector<mlir::Operation *>>>
  inOrder() const;

private:
  struct Edges {
    llvm::SmallVector<mlir::Operation *, 4> producers, consumers;
  };
  struct Members {
    llvm::SmallVector<mlir::Operation *, 1> members;
    /// Place in the topological order.
    unsigned order;
  };
  using Neighbours = llvm::SmallVector<mlir::Operation *, 4> Edges::*;

  std::optional<llvm::SmallVector<Group>>
  reachable(Group from, Group to, Neighbours neighbours) const;

  /// Whether the two groups together read and write too many tensors.
  bool tooManyBuffers(Group a, Group b) const;

  unsigned maxBuffers;
  llvm::DenseMap<mlir::Operation *, int64_t> sides;
  std::vector<mlir::Operation *> all;
  llvm::DenseMap<mlir::Operation *, unsigned> positions;
  llvm::DenseMap<mlir::Operation *, Edges> edges;
  llvm::DenseMap<mlir::Operation *, Group> groupNumbers;
  std::vector<Members> groups;
};

/// Chains of insertions into one tensor (concatenations) become one group.
void groupInsertions(OperatorGroups &groups);

/// Short products that are added up, such as an LSTM's weight gradients over
/// time, become groups of a few.
void groupSums(OperatorGroups &groups);

} // namespace baechi::formkernels

#endif // BAECHI_LIB_TRANSFORMS_FORMKERNELS_OPERATORGROUPS_H

//===- StepBuffers.h - The buffers of a device's step -----------*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef BAECHI_LIB_TRANSFORMS_PLANMEMORY_STEPBUFFERS_H
#define BAECHI_LIB_TRANSFORMS_PLANMEMORY_STEPBUFFERS_H

#include "ArenaPlan.h"
#include "Baechi/Dialect/Baechi.h"
#include "PartPlaces.h"
#include "mlir/IR/SymbolTable.h"

namespace baechi {

/// Which buffers the tensors of a device's step need, and when, in the order of
/// the program. Results share buffers with operands that die, lie in arguments
/// that they update, and in wholes that they are parts of.
class StepBuffers {
public:
  explicit StepBuffers(mlir::func::FuncOp step);

  /// Gives every tensor a buffer. Fails with an error for one without a size.
  llvm::LogicalResult create();

  /// Lets parts of tensors that are put together be made in their places, of
  /// the largest first, where the most bytes that are live at once stay \p
  /// most or what they were. A whole is there from its first part on.
  void joinInPlace(int64_t most);

  /// Takes that back.
  void separate();

  /// A place: the buffer that a root lies in and the bytes from its start. Null
  /// where it lies in an argument's, or nowhere: a constant, or what is lent.
  struct Place {
    size_t buffer = 0;
    int64_t offset = 0;
  };
  std::optional<Place> placeOf(mlir::Value root) const;
  /// The argument in whose place \p root is computed; null: in none.
  mlir::BlockArgument argumentOf(mlir::Value root) const {
    return inArgument.lookup(root);
  }
  /// The buffer of what \p op needs while it runs.
  std::optional<size_t> scratchOf(mlir::Operation *op) const;

  llvm::SmallVector<mlir::Operation *> order;
  llvm::DenseMap<mlir::Operation *, int32_t> positionOf;
  llvm::SmallVector<Buffer> buffers;
  llvm::SmallVector<mlir::Operation *> owners; ///< who needs it first, each

private:
  void findLastReads();
  void findLastUses();
  int32_t releaseOf(SendOp send);
  void findInPlaceUpdates();
  llvm::LogicalResult createBuffer(mlir::Operation *op, mlir::OpResult result,
                                   llvm::SmallDenseSet<size_t> &taken);
  bool readsBesides(mlir::Operation *op, mlir::Value root, size_t buffer) const;
  void addBuffer(int64_t bytes, int32_t first, int32_t last,
                 mlir::Operation *op);
  bool tryJoining(llvm::ArrayRef<mlir::Operation *> more, int64_t most);

  mlir::func::FuncOp step;
  llvm::DenseMap<mlir::Value, int32_t> lastRead; ///< by operators
  llvm::DenseMap<mlir::Value, int32_t> lastUse;  ///< of parts, too
  llvm::DenseMap<mlir::Value, size_t> bufferOf;
  llvm::DenseMap<mlir::Operation *, size_t> scratchBuffer;
  llvm::DenseMap<mlir::Value, mlir::BlockArgument> inArgument;
  /// What is put together in place, and where its parts lie.
  llvm::SmallPtrSet<mlir::Operation *, 8> joined;
  llvm::DenseMap<mlir::Value, PartPlace> partPlaces;
  mlir::SymbolTableCollection symbols;
};

} // namespace baechi

#endif // BAECHI_LIB_TRANSFORMS_PLANMEMORY_STEPBUFFERS_H

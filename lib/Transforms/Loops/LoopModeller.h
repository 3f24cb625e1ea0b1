//===- LoopModeller.h - What makes a loop's model ---------------*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef BAECHI_LIB_TRANSFORMS_LOOPS_LOOPMODELLER_H
#define BAECHI_LIB_TRANSFORMS_LOOPS_LOOPMODELLER_H

#include "Forms.h"
#include "LoopModel.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/SmallPtrSet.h"

namespace baechi {

/// Where a memref of the body lies in the array: for each of the array's
/// dimensions where it begins, and which dimension of the memref goes along it
/// in which steps.
struct ArrayView {
  struct Dimension {
    std::optional<Form> begin;
    std::optional<unsigned> along;
    int64_t step = 1;
  };
  mlir::Value value;
  llvm::SmallVector<Dimension> dimensions;
};

class LoopModeller {
public:
  explicit LoopModeller(ForeachOp op) : op(op), forms(op) {
    op.getBody().walk<mlir::WalkOrder::PreOrder>(
        [&](mlir::Operation *inner) { numbers[inner] = numbers.size(); });
  }

  LoopModel make();

private:
  /// A position of a dimension, and what lies from there on: elements in steps.
  using Position = std::pair<std::optional<Form>, int64_t>;

  void addKeys();
  void addBound(unsigned key, mlir::OpFoldResult bound, bool isLower);
  void addArray(unsigned number, mlir::Value array);
  void markOneNumber(size_t first);
  void addOtherMemory();
  std::string nameOf(unsigned array);

  void addUse(const ArrayView &view, mlir::OpOperand &use);
  std::optional<ArrayView> viewOf(const ArrayView &view, mlir::Operation *user);
  void access(const ArrayView &view, mlir::Operation *by,
              loops::AccessKind kind, llvm::ArrayRef<Position> positions);
  void accessAny(const ArrayView &view, mlir::Operation *by);
  void accessWhole(const ArrayView &view, mlir::Operation *by,
                   loops::AccessKind kind);
  llvm::SmallVector<Position> positions(mlir::ValueRange indices,
                                        mlir::VectorType vector = {});

  ForeachOp op;
  Forms forms;
  LoopModel model;
  llvm::DenseMap<mlir::Operation *, unsigned> numbers; ///< in the body's order
  unsigned current = 0;                                ///< the array
  bool placesMeet = false;                             ///< of the array
  llvm::SmallPtrSet<mlir::Operation *, 8> uses;
  llvm::MapVector<mlir::Operation *, Update> updates; ///< by their stores
  llvm::SmallVector<ArrayView> views;
};

} // namespace baechi

#endif // BAECHI_LIB_TRANSFORMS_LOOPS_LOOPMODELLER_H

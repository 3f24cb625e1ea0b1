//===- TensorWriter.h - Code over memory as code over tensors -*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef BAECHI_LIB_TRANSFORMS_LOOPS_TENSORWRITER_H
#define BAECHI_LIB_TRANSFORMS_LOOPS_TENSORWRITER_H

#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/IRMapping.h"
#include "llvm/ADT/MapVector.h"

namespace baechi {

/// The part of an array that a tensor holds, where it does not hold all of it:
/// positions in a dimension, with `multiple` times those in another if it lies
/// along diagonals, count from `first` on.
struct Window {
  unsigned dimension = 0;
  int64_t first = 0;
  std::optional<unsigned> sheared;
  int64_t multiple = 0;
};

/// Writes operations that read and write memory as operations of tensors: each
/// memref has a tensor that holds what is in it now, which loops and branches
/// carry.
class TensorWriter {
public:
  explicit TensorWriter(mlir::OpBuilder &builder) : builder(builder) {}

  /// From here on \p memref holds \p tensor.
  void keep(mlir::Value memref, mlir::Value tensor,
            std::optional<Window> window = std::nullopt);
  mlir::Value current(mlir::Value memref) const {
    return kept.lookup(memref).tensor;
  }
  /// The same of a view, too.
  mlir::Value read(mlir::Value memref);
  void assign(mlir::Value memref, mlir::Value tensor);
  /// Values that are no memory.
  mlir::IRMapping &values() { return mapping; }

  /// Writes a copy of \p op, or of all operations of \p block but the last.
  /// Errors name what has no form over tensors, with the mend.
  llvm::LogicalResult write(mlir::Operation *op);
  llvm::LogicalResult write(mlir::Block &block);

  /// What is kept and \p op writes.
  llvm::SmallVector<mlir::Value> writtenBy(mlir::Operation *op) const;

  /// A loop that carries what \p memrefs hold; the builder stands in its body
  /// until it is closed.
  mlir::scf::ForOp openFor(mlir::Location loc, mlir::Value from, mlir::Value to,
                           mlir::Value step, mlir::ValueRange carried,
                           llvm::ArrayRef<mlir::Value> memrefs);
  void closeFor(mlir::scf::ForOp loop, mlir::ValueRange yielded,
                llvm::ArrayRef<mlir::Value> memrefs);
  /// What \p inside writes is done if \p condition holds, what `otherwise`
  /// does if not.
  llvm::LogicalResult
  writeIf(mlir::Location loc, mlir::Value condition, mlir::TypeRange results,
          llvm::ArrayRef<mlir::Value> memrefs,
          llvm::function_ref<mlir::FailureOr<llvm::SmallVector<mlir::Value>>()>
              inside,
          llvm::function_ref<mlir::FailureOr<llvm::SmallVector<mlir::Value>>()>
              otherwise,
          llvm::SmallVectorImpl<mlir::Value> &made);

private:
  struct Kept {
    mlir::Value tensor;
    std::optional<Window> window;
  };

  mlir::Value mapped(mlir::Value value) const {
    return mapping.lookupOrDefault(value);
  }
  mlir::Value rootOf(mlir::Value memref) const;
  /// Of a memref that is kept, or of the same by another name.
  const Window *windowOf(mlir::Value memref) const;
  void shift(mlir::Location loc, const Window &window,
             llvm::MutableArrayRef<mlir::OpFoldResult> positions);
  llvm::SmallVector<mlir::Value> indices(mlir::Location loc, mlir::Value memref,
                                         mlir::ValueRange of);
  llvm::LogicalResult writeFor(mlir::scf::ForOp loop);
  llvm::LogicalResult writeIf(mlir::scf::IfOp branch);
  void writeDestination(mlir::Operation *op);

  mlir::OpBuilder &builder;
  mlir::IRMapping mapping;
  llvm::MapVector<mlir::Value, Kept> kept;
};

/// The tensor of what \p memref holds, without a layout.
mlir::RankedTensorType tensorOf(mlir::MemRefType memref);

} // namespace baechi

#endif // BAECHI_LIB_TRANSFORMS_LOOPS_TENSORWRITER_H

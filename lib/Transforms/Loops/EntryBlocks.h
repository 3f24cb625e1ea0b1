//===- EntryBlocks.h - Entries of key arrays in blocks -*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef BAECHI_LIB_TRANSFORMS_LOOPS_ENTRYBLOCKS_H
#define BAECHI_LIB_TRANSFORMS_LOOPS_ENTRYBLOCKS_H

#include "Baechi/Dialect/LoopOps.h"
#include "Baechi/Loops/Schedule.h"
#include "TensorWriter.h"

namespace baechi {

/// The entries of a loop over key arrays, one block after the other, as the
/// step sorts them: which are in a block only the run knows.
class EntryBlocks {
public:
  /// Writes the sort.
  EntryBlocks(ForeachOp op, const loops::Schedule &schedule,
              TensorWriter &outer, mlir::OpBuilder &builder);

  /// Writes the entries of block \p number of the schedule, which change what
  /// \p memrefs hold.
  llvm::LogicalResult writeBlock(size_t number, mlir::Location name,
                                 TensorWriter &writer,
                                 llvm::ArrayRef<mlir::Value> memrefs);

  /// Writes the new values, if entries have some, where their entries are.
  void finish();

private:
  mlir::Value constant(int64_t of);
  mlir::Value at(mlir::Value tensor, mlir::Value index);
  mlir::Value asIndex(mlir::Value word);
  mlir::Value blockOf(mlir::Value entry);
  mlir::Value sorted(mlir::Value column);
  std::pair<mlir::Value, mlir::Value> rangeOf(size_t block);

  ForeachOp op;
  const loops::Schedule &schedule;
  TensorWriter &outer;
  mlir::OpBuilder &builder;
  mlir::Location loc;
  int64_t count;                          ///< of entries
  mlir::Value starts;                     ///< by block, and the end
  mlir::Value order;                      ///< the entries' numbers
  llvm::SmallVector<mlir::Value> columns; ///< key arrays as they are given
  llvm::SmallVector<mlir::Value> keys, values;
  /// By worker, new values of the entries of its blocks.
  llvm::SmallVector<llvm::SmallVector<mlir::Value>> made;
};

} // namespace baechi

#endif // BAECHI_LIB_TRANSFORMS_LOOPS_ENTRYBLOCKS_H

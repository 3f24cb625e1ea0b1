//===- PositionChecks.h - Positions that data tell   -*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef BAECHI_LIB_TRANSFORMS_LOOPS_POSITIONCHECKS_H
#define BAECHI_LIB_TRANSFORMS_LOOPS_POSITIONCHECKS_H

#include "Baechi/Dialect/LoopOps.h"
#include "Baechi/Loops/Loop.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace baechi {

/// Checks of the positions of a function that bounds do not show to be inside
/// of their arrays: accesses outside are not made, and the first of each is
/// kept in memory of the function's (Outside.h).
class PositionChecks {
public:
  explicit PositionChecks(mlir::func::FuncOp function) : function(function) {}

  /// Notes what is to be checked in \p op, an outermost loop.
  void note(ForeachOp op, const loops::Loop &loop);
  /// Notes what is to be checked beside the loops.
  void noteOthers();
  /// Writes the checks of all that was noted. The loops of \p isInBlocks have
  /// sums of each block's own of what is kept, their last array.
  llvm::LogicalResult write(llvm::function_ref<bool(ForeachOp)> isInBlocks);

  /// What keeps them; null without checks.
  mlir::Value memory() const { return kept; }
  /// What its words are about.
  mlir::ArrayAttr description();

private:
  struct Site {
    mlir::Operation *op = nullptr;
    unsigned dimension = 0;
    mlir::Value position;
    int64_t end = 0; ///< the positions are from 0 up to this
    size_t slot = 0;
  };
  struct Loop {
    ForeachOp op;
    std::vector<Site> sites;
    size_t firstKey = 0; ///< the slot of its first key array
  };

  size_t addSlot(mlir::Location loc, const llvm::Twine &before,
                 const llvm::Twine &after, ForeachOp entries);
  void addSite(std::vector<Site> &to, Site site, mlir::Value array,
               ForeachOp entries);
  void collect(mlir::Operation *op, ForeachOp within,
               llvm::function_ref<bool(mlir::OpFoldResult, int64_t)> isInside,
               std::vector<Site> &to);
  void checkKeys(Loop &loop);
  llvm::LogicalResult checkSites(std::vector<Site> &sites, mlir::Value memory,
                                 ForeachOp entries);
  /// The number of the entry that runs; null where entries have none.
  mlir::Value entryNumber(mlir::OpBuilder &builder, mlir::Location loc,
                          const Site &site, ForeachOp entries);
  void record(mlir::OpBuilder &builder, mlir::Location loc, mlir::Value memory,
              const Site &site, mlir::Value entry);

  mlir::func::FuncOp function;
  std::vector<Loop> loops;
  std::vector<Site> others;
  llvm::SmallVector<mlir::Attribute> slots;
  mlir::Value kept;
};

} // namespace baechi

#endif // BAECHI_LIB_TRANSFORMS_LOOPS_POSITIONCHECKS_H

//===- Storage.h - Arguments and results in pieces --------------*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef BAECHI_LIB_TRANSFORMS_SPLIT_STORAGE_H
#define BAECHI_LIB_TRANSFORMS_SPLIT_STORAGE_H

#include "Pieces.h"
#include <string>

namespace baechi::split {

/// What a step's signature has in pieces (`baechi.piece`), and what it does
/// not, though it is cut.
struct Storage {
  struct Whole {
    unsigned argument; ///< its position
    mlir::Location loc;
    std::string why;
  };
  int64_t arguments = 0, results = 0;
  int64_t bytes = 0; ///< of the arguments
  std::vector<Whole> whole;
};

/// Puts what \p step, whose operations are rewritten, returns in the place of
/// its terminator's operands, and erases \p gone, the operations that were cut.
/// Where \p inPieces, and all that reads an argument reads the same pieces, and
/// its next value is made in them, the argument then is as many arguments.
/// Results that nothing reads as a whole are in pieces, too.
Storage writeSignature(mlir::func::FuncOp step, PieceTable &table,
                       mlir::OpBuilder &builder,
                       llvm::ArrayRef<mlir::Operation *> gone, bool inPieces);

/// Does what \p plan says. \p repeatedBytes: see PieceTable.
Storage rewriteInPieces(mlir::func::FuncOp step, const SplitPlan &plan,
                        bool storedInPieces, int64_t repeatedBytes = 0);

} // namespace baechi::split

#endif // BAECHI_LIB_TRANSFORMS_SPLIT_STORAGE_H

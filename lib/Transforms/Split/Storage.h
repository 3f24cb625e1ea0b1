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

/// What a signature may have in pieces.
enum class Stored {
  Whole, ///< nothing
  /// Arguments that all readers have in the same pieces.
  InPieces,
  /// Arguments that some readers have in the same pieces, too: each replica
  /// puts together what its operations read as a whole.
  WithWholes,
};

/// Puts what \p step, whose operations are rewritten, returns in the place of
/// its terminator's operands, and erases \p gone, the operations that were cut.
/// Where \p stored allows it, and an argument's next value is made in the
/// pieces that it is read in, the argument then is as many arguments. Results
/// that nothing reads as a whole are in pieces, too.
Storage writeSignature(mlir::func::FuncOp step, PieceTable &table,
                       mlir::OpBuilder &builder,
                       llvm::ArrayRef<mlir::Operation *> gone, Stored stored);

/// Does what \p plan says. \p repeatedBytes: see PieceTable.
Storage rewriteInPieces(mlir::func::FuncOp step, const SplitPlan &plan,
                        Stored stored, int64_t repeatedBytes = 0);

} // namespace baechi::split

#endif // BAECHI_LIB_TRANSFORMS_SPLIT_STORAGE_H

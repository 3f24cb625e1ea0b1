//===- Pieces.h - The attribute of tensors stored in pieces -----*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef BAECHI_DIALECT_PIECES_H
#define BAECHI_DIALECT_PIECES_H

#include "mlir/IR/BuiltinTypes.h"

#define GET_ATTRDEF_CLASSES
#include "Baechi/Dialect/PieceAttrs.h.inc"

namespace baechi {

/// On an argument or a result of a step: a #baechi.piece, which part it is of
/// what the step's caller has whole.
constexpr llvm::StringLiteral kPiece = "baechi.piece";

} // namespace baechi

#endif // BAECHI_DIALECT_PIECES_H

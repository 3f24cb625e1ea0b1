//===- Border.cpp - A step as its caller has it ---------------------------===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Baechi/Analysis/Border.h"
#include "Baechi/Dialect/Baechi.h"

using namespace mlir;
using namespace baechi;

static constexpr StringLiteral kOpen = "and the next piece is not behind it";

/// \p attribute: of the tensor of a position, by its name.
static FailureOr<SmallVector<BorderTensor>>
collect(Location loc, StringRef what, TypeRange types,
        function_ref<Attribute(unsigned, StringRef)> attribute) {
  SmallVector<BorderTensor> tensors;
  PieceAttr last; // of a tensor that is not complete
  auto misplaced = [&](unsigned position, PieceAttr piece, StringRef why) {
    return emitError(loc) << what << " " << position << " is " << piece << ", "
                          << why
                          << "; the pieces of a tensor follow each other";
  };
  for (auto [position, type] : llvm::enumerate(types)) {
    auto piece = dyn_cast_or_null<PieceAttr>(attribute(position, kPiece));
    if (last && (!piece || !piece.follows(last)))
      return misplaced(position - 1, last, kOpen);
    if (!last) {
      if (piece && piece.getStart() != 0)
        return misplaced(position, piece, "and no piece is before it");
      auto name = dyn_cast_or_null<StringAttr>(
          attribute(position, BaechiDialect::kName));
      BorderTensor &tensor = tensors.emplace_back();
      tensor.number = tensors.size() - 1;
      tensor.type = piece ? Type(piece.getWhole()) : type;
      tensor.name = piece ? piece.getOf().str() : name ? name.str() : "";
      tensor.first = position;
      tensor.count = 0;
    }
    ++tensors.back().count;
    if (piece)
      tensors.back().pieces.push_back(piece);
    last = piece && !piece.isLast() ? piece : PieceAttr();
  }
  if (last)
    return misplaced(types.size() - 1, last, kOpen);
  return tensors;
}

FailureOr<SmallVector<BorderTensor>>
baechi::borderArguments(FunctionOpInterface step) {
  return collect(step.getLoc(), "argument", step.getArgumentTypes(),
                 [&](unsigned position, StringRef name) {
                   return step.getArgAttr(position, name);
                 });
}

FailureOr<SmallVector<BorderTensor>>
baechi::borderResults(FunctionOpInterface step) {
  return collect(step.getLoc(), "result", step.getResultTypes(),
                 [&](unsigned position, StringRef name) {
                   return step.getResultAttr(position, name);
                 });
}

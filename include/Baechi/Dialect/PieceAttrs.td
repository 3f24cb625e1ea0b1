//===- PieceAttrs.td - Tensors that are stored in pieces -*- tablegen -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef BAECHI_PIECE_ATTRS
#define BAECHI_PIECE_ATTRS

include "Baechi/Dialect/BaechiDialect.td"
include "mlir/IR/AttrTypeBase.td"

def Baechi_PieceAttr : AttrDef<Baechi_Dialect, "Piece"> {
  let mnemonic = "piece";
  let summary = "which part of a tensor an argument or a result is";
  let description = [{
    `baechi.piece` on arguments and results of a step. Its caller has the tensor
    `of`, of type `whole`, as one argument or result; in the function it is
    several, its pieces, in their order and without gaps (docs/splitting.md). The piece has elements `start` to `start + size` of dimension
    `dim`. Where that dimension has joined `outer` others, it has these of each
    of `outer` parts of the dimension.

    ```mlir
    func.func @step(%w0: tensor<8x2xf32> {baechi.piece = #baechi.piece<of = "w", whole = tensor<8x3xf32>, dim = 1, start = 0, size = 2>},
                    %w1: tensor<8x1xf32> {baechi.piece = #baechi.piece<of = "w", whole = tensor<8x3xf32>, dim = 1, start = 2, size = 1>})
    ```
  }];
  let parameters = (ins StringRefParameter<"the whole's name">:$of,
                        "::mlir::RankedTensorType":$whole, "int64_t":$dim,
                        "int64_t":$start, "int64_t":$size,
                        DefaultValuedParameter<"int64_t", "1">:$outer);
  let assemblyFormat = "`<` struct(params) `>`";
  let genVerifyDecl = 1;
  let extraClassDeclaration = [{
    /// Elements that are cut into pieces, in each of the outer parts.
    int64_t getExtent() const {
      return getWhole().getDimSize(getDim()) / getOuter();
    }
    bool isLast() const { return getStart() + getSize() == getExtent(); }
    /// Whether this is the piece behind \p other.
    bool follows(PieceAttr other) const {
      return getOf() == other.getOf() && getWhole() == other.getWhole() &&
             getDim() == other.getDim() && getOuter() == other.getOuter() &&
             getStart() == other.getStart() + other.getSize();
    }
    /// The type of the piece itself.
    ::mlir::RankedTensorType getPieceType() const;
  }];
}

#endif // BAECHI_PIECE_ATTRS

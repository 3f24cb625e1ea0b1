//===- ContractionPatterns.h - Neighbours into contractions -----*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// What is done with the one reader of a contraction's result by the
/// contraction itself: written elsewhere, or added to something. And what a
/// contraction need not multiply.
///
//===----------------------------------------------------------------------===//
#ifndef BAECHI_TRANSFORMS_CONTRACTIONPATTERNS_H
#define BAECHI_TRANSFORMS_CONTRACTIONPATTERNS_H

#include "Baechi/Analysis/Contraction.h"
#include "mlir/IR/PatternMatch.h"

namespace baechi {

/// The contraction that computes \p value for one user, from zero.
std::optional<Contraction> matchOnlyUse(mlir::Value value);

/// Whether \p op moves elements without computing anything.
bool isShuffle(mlir::linalg::GenericOp op);

/// The number that all elements of \p tensor are; null where it is not known.
mlir::Attribute splatOf(mlir::Value tensor);

/// Both tensors that \p op adds up, element by element, and does nothing else.
std::optional<std::array<mlir::Value, 2>>
matchAddition(mlir::linalg::GenericOp op);

/// Replaces \p op by \p contraction with another start and result map.
void replaceByContraction(mlir::PatternRewriter &rewriter,
                          mlir::linalg::GenericOp op,
                          mlir::linalg::GenericOp contraction,
                          mlir::Value start, mlir::AffineMap resultMap);

/// Whether an operation stays as it is; null: none does.
using IsKept = std::function<bool(mlir::Operation *)>;

/// Leaves out the products with the zeros between the elements of a dilated
/// tensor, as in the gradients of convolutions with strides. \p inSumsAlone:
/// where they are terms of a sum, as of filters' gradients, and not where
/// results become parts, but for long sums (`kShortSum`).
void skipDilationZeros(mlir::Operation *root, bool inSumsAlone = false,
                       const IsKept &isKept = nullptr);

/// A transposition of a contraction's result: the contraction writes there.
void populateTransposedResults(mlir::RewritePatternSet &patterns,
                               IsKept isKept = nullptr);

} // namespace baechi

#endif // BAECHI_TRANSFORMS_CONTRACTIONPATTERNS_H

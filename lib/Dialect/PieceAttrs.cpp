//===- PieceAttrs.cpp - Tensors that are stored in pieces -----------------===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Baechi/Dialect/Baechi.h"
#include "Baechi/Dialect/Pieces.h"

using namespace mlir;
using namespace baechi;

LogicalResult PieceAttr::verify(function_ref<InFlightDiagnostic()> emitError,
                                StringRef of, RankedTensorType whole,
                                int64_t dim, int64_t start, int64_t size,
                                int64_t outer) {
  if (of.empty())
    return emitError() << "a piece names what it is of";
  if (!whole.hasStaticShape())
    return emitError() << "a piece is of a tensor of static shape, not of "
                       << whole;
  if (dim < 0 || dim >= whole.getRank())
    return emitError() << whole << " has no dimension " << dim
                       << " to be cut along";
  int64_t elements = whole.getDimSize(dim);
  if (outer < 1 || elements % outer != 0)
    return emitError() << "dimension " << dim << " of " << whole
                       << " does not have " << outer << " equal parts";
  if (start < 0 || size < 1 || size > elements / outer - start)
    return emitError() << "a piece of " << size << " elements from " << start
                       << " on is no part of " << elements / outer;
  return success();
}

RankedTensorType PieceAttr::getPieceType() const {
  SmallVector<int64_t> shape(getWhole().getShape());
  shape[getDim()] = getOuter() * getSize();
  return getWhole().clone(shape);
}

//===- Bounds.cpp - Positions that arrays do not have ----------*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Bounds.h"
#include "Baechi/Loops/Schedule.h"

using namespace mlir;
using namespace baechi;

/// Where the first of the positions of \p subscript may be that all of them fit
/// into \p extent.
static loops::Span roomFor(const loops::Subscript &subscript, int64_t extent) {
  return {0, std::max<int64_t>(0, extent - subscript.size + 1)};
}

/// Whether the entries are all keys of the loop's domain and no others.
static bool areEntriesKnown(ForeachOp op, const loops::Loop &loop) {
  if (op.isSparse() ||
      llvm::is_contained(op.getLowers(), ShapedType::kDynamic) ||
      llvm::is_contained(op.getUppers(), ShapedType::kDynamic))
    return false;
  size_t constraints = 0;
  if (op.getWhere())
    for (bool isEquation : op.getWhere()->getEqFlags())
      constraints += isEquation ? 2 : 1;
  return loop.domain.size() == constraints;
}

LogicalResult baechi::checkBounds(ForeachOp op, const LoopModel &model) {
  const loops::Loop &loop = model.loop;
  if (!areEntriesKnown(op, loop))
    return success();
  for (auto [access, operation, certain] :
       llvm::zip(loop.accesses, model.operations, model.certain)) {
    if (!certain)
      continue;
    const loops::Array &array = loop.arrays[access.array];
    for (auto [dimension, subscript] : llvm::enumerate(access.subscripts)) {
      int64_t extent = array.extents[dimension];
      if (subscript.kind != loops::Subscript::Kind::At || extent < 0)
        continue;
      loops::Place place =
          loops::placeOf(loop, subscript.at, roomFor(subscript, extent));
      if (!place.outside)
        continue;
      InFlightDiagnostic error = operation->emitOpError();
      error << loops::text(loop, access) << " outside of '" << array.name
            << "'";
      if (place.least && place.most)
        error << ": at positions " << *place.least << " to "
              << *place.most + subscript.size - 1;
      return error << " of dimension " << dimension << ", which has 0 to "
                   << extent - 1
                   << "; change the loop's bounds, or do it only where it is "
                      "inside (scf.if)";
    }
  }
  return success();
}

//===- MovingRows.cpp - Arrays that move between blocks -*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "MovingRows.h"
#include "llvm/ADT/STLExtras.h"

using namespace mlir;
using namespace baechi;

MovingRows::MovingRows(RowWriter &writer, std::string name, unsigned dimension,
                       Value whole)
    : writer(writer), name(std::move(name)), dimension(dimension),
      type(cast<RankedTensorType>(whole.getType())),
      parts({{{0, type.getDimSize(dimension)}, whole, 0, false}}) {}

Value MovingRows::collect(loops::Span span, int64_t length, bool apart) {
  SmallVector<int64_t> shape(type.getShape());
  shape[dimension] = length;
  Value made = writer.empty(type.clone(shape));
  for (const Part &part : parts) {
    if (!part.rows.meets(span))
      continue;
    int64_t first = std::max(span.first, part.rows.first);
    int64_t end = std::min(span.end, part.rows.end);
    Value rows = writer.rowsOf(part.tensor, dimension,
                               {first - part.begin, end - part.begin});
    if (apart && part.ofBlock)
      rows =
          writer.copyOf(rows, dimension, "strip/" + name + "/" + Twine(first));
    made = writer.putRows(rows, made, dimension, first - span.first);
  }
  return made;
}

Value MovingRows::gather(loops::Span span, int64_t length) {
  return collect(span, length, /*apart=*/true);
}

Value MovingRows::all() {
  int64_t extent = type.getDimSize(dimension);
  return collect({0, extent}, extent, /*apart=*/false);
}

void MovingRows::put(loops::Span span, Value tensor, int64_t begin) {
  if (span.empty())
    return;
  SmallVector<Part> left;
  for (const Part &part : parts) {
    Part below = part, above = part;
    below.rows.end = std::min(part.rows.end, span.first);
    above.rows.first = std::max(part.rows.first, span.end);
    for (const Part &rest : {below, above})
      if (!rest.rows.empty())
        left.push_back(rest);
  }
  left.push_back({span, tensor, begin, true});
  llvm::sort(left, [](const Part &a, const Part &b) {
    return a.rows.first < b.rows.first;
  });
  parts = std::move(left);
}

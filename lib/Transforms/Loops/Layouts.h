//===- Layouts.h - Whether places of a memref meet --------------*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef BAECHI_LIB_TRANSFORMS_LOOPS_LAYOUTS_H
#define BAECHI_LIB_TRANSFORMS_LOOPS_LAYOUTS_H

#include "mlir/IR/BuiltinTypes.h"

namespace baechi {

/// Whether elements at different indices lie at different places. Strides and
/// extents that are not known are taken not to make them meet.
bool hasDistinctPlaces(mlir::MemRefType type);

} // namespace baechi

#endif // BAECHI_LIB_TRANSFORMS_LOOPS_LAYOUTS_H

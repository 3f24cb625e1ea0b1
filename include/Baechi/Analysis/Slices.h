//===- Slices.h - Slices that are views of a buffer -------------*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef BAECHI_ANALYSIS_SLICES_H
#define BAECHI_ANALYSIS_SLICES_H

#include "mlir/IR/Operation.h"
#include <optional>

namespace baechi {

/// The bytes from the start of the source to a tensor.extract_slice that is one
/// piece of it and starts where tensors may start (kAlignment): it needs no
/// code and no buffer. Nothing for other operations.
std::optional<int64_t> sliceOffset(mlir::Operation *op);

/// The same for where a tensor.insert_slice puts its source: the bytes from the
/// start of the result to it.
std::optional<int64_t> insertOffset(mlir::Operation *op);

} // namespace baechi

#endif // BAECHI_ANALYSIS_SLICES_H

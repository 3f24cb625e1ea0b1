//===- Uniform.h - Tensors whose elements are all the same ------*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef BAECHI_LIB_TRANSFORMS_SPLIT_UNIFORM_H
#define BAECHI_LIB_TRANSFORMS_SPLIT_UNIFORM_H

#include "mlir/IR/Value.h"

namespace baechi::split {

/// Whether all elements of \p value are the same, as it is a constant, or
/// computed of scalars alone (or is storage without a value yet): any part of
/// it is computed as easily as the whole.
bool isUniform(mlir::Value value);

/// Whether \p value is uniform and several read it. That ties them together no
/// more than a scalar would: a zero that all layers are compared with, the rate
/// of all updates of a shape. Each gets pieces of its own.
bool isSharedUniform(mlir::Value value);

} // namespace baechi::split

#endif // BAECHI_LIB_TRANSFORMS_SPLIT_UNIFORM_H

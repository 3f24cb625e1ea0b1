//===- BufferProducts.h - Products within kernels ---------------*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef BAECHI_LIB_CONVERSION_KERNELS_HOST_BUFFERPRODUCTS_H
#define BAECHI_LIB_CONVERSION_KERNELS_HOST_BUFFERPRODUCTS_H

#include "Common/Lowering.h"

namespace baechi {

/// Makes register tiles (Tiles.h) of the products of matrices in bufferized
/// kernels, wherever in loops and branches they are. Products stay linalg
/// operations where they are too small to gain, are not in single precision,
/// have buffers of unknown strides, or where the result cannot be shown to lie
/// in another buffer than the factors. The products of a kernel share one
/// buffer for packed operands, an allocation outside all loops.
void tileProducts(mlir::ModuleOp kernels, const KernelSignatures &signatures);

} // namespace baechi

#endif // BAECHI_LIB_CONVERSION_KERNELS_HOST_BUFFERPRODUCTS_H

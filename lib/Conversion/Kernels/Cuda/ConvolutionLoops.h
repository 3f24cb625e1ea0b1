//===- ConvolutionLoops.h - The loops of a convolution -*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef BAECHI_LIB_CONVERSION_KERNELS_CUDA_CONVOLUTIONLOOPS_H
#define BAECHI_LIB_CONVERSION_KERNELS_CUDA_CONVOLUTIONLOOPS_H

#include "Common/StridedProduct.h"

namespace baechi {

/// A dimension of space: the loop through the images' results (or their
/// gradient), and the one through the window. A loop says how far it moves in
/// the images (a), in the other operand (b) and in the result (c); size 1:
/// there is none.
struct ConvolutionSpace {
  ProductLoop place, window;
  int64_t step = 1, dilation = 1;
  /// From a pixel to the next.
  int64_t stride = 0;
};

/// The loops of a contraction by what a convolution does with them.
struct ConvolutionLoops {
  llvm::SmallVector<ConvolutionSpace> spaces;
  /// Through images and result; images and the other operand; the other operand
  /// and the result; all.
  ProductLoops ofResult, summed, ofOther, groups;
};

/// Sorts the loops of \p op, a contraction, as a convolution's; nothing where
/// it is none. \p swapped: the images are the right operand.
std::optional<ConvolutionLoops> sortConvolutionLoops(mlir::linalg::GenericOp op,
                                                     bool &swapped);

/// Has the loops through images be the dimensions of a convolution: with
/// \p ofFilters what the result has are windows. False where they are too many.
bool setSpaces(ConvolutionLoops &loops, bool ofFilters);

} // namespace baechi

#endif // BAECHI_LIB_CONVERSION_KERNELS_CUDA_CONVOLUTIONLOOPS_H

//===- OpenBlas.h - OpenBLAS, loaded when it is needed -*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef BAECHI_CONVERSION_OPENBLAS_H
#define BAECHI_CONVERSION_OPENBLAS_H

#include "llvm/Support/Error.h"
#include <string>

namespace baechi {

struct OpenBlas {
  /// cblas_sgemm of the C BLAS interface, 32-bit integers.
  void *sgemm = nullptr;
  /// The kernels that OpenBLAS chose, for example "SkylakeX".
  std::string core;
};

/// Loads the system's libopenblas on the first call, to run on the calling
/// thread only. Where the processor has AVX-512 it is told to use it
/// (OPENBLAS_CORETYPE=SkylakeX, unless the variable is set): versions older
/// than the processor choose slower kernels.
llvm::Expected<OpenBlas> loadOpenBlas();

} // namespace baechi

#endif // BAECHI_CONVERSION_OPENBLAS_H

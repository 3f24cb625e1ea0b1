//===- GemmLibraries.h - Libraries that multiply matrices -*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef BAECHI_CONVERSION_HOSTJIT_GEMMLIBRARIES_H
#define BAECHI_CONVERSION_HOSTJIT_GEMMLIBRARIES_H

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/Support/Error.h"
#include <string>

namespace baechi {

/// A library that kernels may call to multiply matrices.
struct GemmLibrary {
  /// Of kernels, `baechi.implementation`.
  llvm::StringLiteral implementation;
  /// For people: its name, and Debian's package.
  llvm::StringLiteral title, package;
  /// The shared objects that the symbols are in, the library itself first.
  llvm::ArrayRef<llvm::StringLiteral> objects;
  /// The functions that kernels call.
  llvm::ArrayRef<llvm::StringLiteral> symbols;
};

/// OpenBLAS and oneDNN.
llvm::ArrayRef<GemmLibrary> gemmLibraries();
/// Null for implementations that are no library's.
const GemmLibrary *findGemmLibrary(llvm::StringRef implementation);

/// The addresses of the library's symbols, in their order. Loads the system's
/// on the first call, to run on the calling thread only. OpenBLAS is told to
/// use AVX-512 where the processor has it (OPENBLAS_CORETYPE=SkylakeX, unless
/// the variable is set): versions older than the processor choose slower
/// kernels.
llvm::Expected<llvm::SmallVector<void *>>
loadGemmLibrary(const GemmLibrary &library);

/// What the library says of itself, for example "0.3.21"; empty where it cannot
/// be loaded, "unknown" where it says nothing.
std::string gemmLibraryVersion(const GemmLibrary &library);

/// The kernels that OpenBLAS chose, for example "SkylakeX"; empty where it does
/// not say or is not there.
std::string openBlasCore();

} // namespace baechi

#endif // BAECHI_CONVERSION_HOSTJIT_GEMMLIBRARIES_H

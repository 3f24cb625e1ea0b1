//===- StepLibrary.h - A compiled step as a shared object -------*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef BAECHI_TARGET_STEPLIBRARY_H
#define BAECHI_TARGET_STEPLIBRARY_H

#include "Baechi/Runtime/Program.h"
#include "llvm/Support/Error.h"
#include "llvm/Support/MemoryBufferRef.h"

namespace baechi {

/// Links the host code of a program with the runtime to the shared object
/// \p path, which needs nothing of MLIR, and writes its C header beside it
/// (docs/step-library.md). Symbols begin with the file's name. Both files
/// appear whole or not at all. Uses the C compiler that CC names, else `cc`,
/// `clang` or `gcc`, as linker, and the runtime's archive of this installation.
///
/// \p manifest: docs/program-format.md; \p objects: relocatable, for this
/// machine, position-independent.
llvm::Error writeStepLibrary(llvm::StringRef path, llvm::StringRef manifest,
                             llvm::ArrayRef<llvm::MemoryBufferRef> objects);

/// What a library is linked by and with, beside its objects: it changes with
/// the compiler's name and with the runtime.
llvm::Expected<std::string> describeLinking();

/// The library's prefix and names as C identifiers: "params/w" is "PARAMS_W".
std::string cIdentifier(llvm::StringRef name, bool upper);
/// Whether a C or C++ program cannot have a type of that name, or its header.
bool isReservedInC(llvm::StringRef name);
/// The C header of a program, and the C source that defines what it declares.
/// \p blas: the code calls OpenBLAS, which then computes in the calling
/// threads.
std::string stepLibraryHeader(llvm::StringRef prefix,
                              const runtime::Program &program);
std::string stepLibrarySource(llvm::StringRef prefix, llvm::StringRef manifest,
                              const runtime::Program &program, bool blas);

} // namespace baechi

#endif // BAECHI_TARGET_STEPLIBRARY_H

//===- Version.h - What --version says --------------------------*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// `--version` of the tools whose command line is LLVM's: the project's
/// version, which LLVM knows nothing of, then LLVM's. Before the options are
/// parsed.
///
//===----------------------------------------------------------------------===//
#ifndef BAECHI_TOOLS_VERSION_H
#define BAECHI_TOOLS_VERSION_H

#include "llvm/Support/CommandLine.h"
#include "llvm/Support/raw_ostream.h"

namespace baechi {

inline void tellVersion() {
  llvm::cl::SetVersionPrinter([](llvm::raw_ostream &os) {
    os << "Baechi " BAECHI_VERSION "\n";
    llvm::cl::PrintVersionMessage();
  });
}

} // namespace baechi

#endif // BAECHI_TOOLS_VERSION_H

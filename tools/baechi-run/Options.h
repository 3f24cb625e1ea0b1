//===- Options.h - Command line of baechi-run -------------------*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef BAECHI_TOOLS_BAECHI_RUN_OPTIONS_H
#define BAECHI_TOOLS_BAECHI_RUN_OPTIONS_H

#include "Baechi/Driver/Stale/StaleRun.h"

namespace baechi {

struct RunOptions {
  DriverOptions driver;
  StepOptions steps;
  OutputOptions files;
  std::optional<StaleOptions> stale; ///< none: one program of all replicas
  std::string emit, library;         ///< "so" and the file; empty: run
  std::string queryMachine;          ///< the machine file to write; empty: run
  bool progressLines = false;        ///< for another program, no bars
  bool calls = false;                ///< are read from the standard input
};

/// Reads the command line and checks what it says.
llvm::Expected<RunOptions> parseOptions(int argc, char **argv);

} // namespace baechi

#endif // BAECHI_TOOLS_BAECHI_RUN_OPTIONS_H

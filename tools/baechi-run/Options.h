//===- Options.h - Command line of baechi-run -*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef BAECHI_TOOLS_BAECHI_RUN_OPTIONS_H
#define BAECHI_TOOLS_BAECHI_RUN_OPTIONS_H

#include "Baechi/Pipelines/HostCompiler.h"
#include <string>

namespace baechi {

struct RunOptions {
  std::string model;
  std::string machine;
  PlaceRequest place;
  int64_t steps = 20;
  std::string profile;
  std::string costs;
  std::string cudaMath; ///< of products on GPUs
  std::string inputs, outputs, reference;
  bool check = false;
  std::string trace, json, html;
  std::string emit, output; ///< "so" and the file; empty: run
  std::string store;        ///< folder of compiled kernels; empty: none
  std::string queryMachine;
  std::string calibrate;
  double watchdog = 60;
  unsigned threads = 2;
  bool sanitizeCode = false;
  int64_t injectFault = 0; ///< the call of the runtime to fail; 0: none
  int killRank = -1;       ///< the rank to kill in a step; -1: none
};

/// Parses the command line; prints an error and exits with status 1 on a bad
/// one.
RunOptions parseOptions(int argc, char **argv);

} // namespace baechi

#endif // BAECHI_TOOLS_BAECHI_RUN_OPTIONS_H

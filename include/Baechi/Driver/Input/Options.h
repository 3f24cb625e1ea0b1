//===- Options.h - What a compilation and a run are asked -------*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef BAECHI_DRIVER_INPUT_OPTIONS_H
#define BAECHI_DRIVER_INPUT_OPTIONS_H

#include "Baechi/Pipelines/CompileOptions.h"
#include "llvm/Support/Error.h"
#include <optional>
#include <string>
#include <vector>

namespace baechi {

/// How many of a machine's devices compute on this computer, and how many of
/// them in this process; 0: all.
struct DevicesHere {
  size_t onComputer = 0, inProcess = 0;
};

/// From a model to code for a machine.
struct DriverOptions : CompileOptions {
  std::string model;               ///< file, or what messages call the text
  std::optional<std::string> text; ///< the model's; none: the file's
  std::string firstValues;         ///< of arguments, where the text lacks them
  double watchdog = 60;            ///< seconds, of every step; 0: none
  bool keepObjects = false;        ///< for other processes and libraries
  bool hostCalls = false;          ///< who runs the program computes them
  bool sanitizeCode = false;       ///< for ThreadSanitizer
  bool otherProcesses = false;     ///< run some of the devices
  DevicesHere devicesHere;         ///< where they do
  bool measuresPeaks = true;       ///< for reports, where the profile has none
  bool measuresLater = false;      ///< steps, by who runs the program
};

/// From code to steps, compared with one device and a reference.
struct StepOptions {
  int64_t steps = 20;
  bool check = true;                  ///< run on one device, too
  std::string inputs, reference;      ///< files; empty: none
  std::vector<double> expected;       ///< the reference's losses
  bool overlap = false;               ///< steps begin before others end
  bool calibrates = false;            ///< measures the runtime for it
  std::optional<int64_t> injectFault; ///< the call of the runtime to fail
  int killRank = -1;                  ///< the rank to kill in a step; -1: none
};

/// What a run leaves behind: files, empty for none.
struct OutputOptions {
  std::string outputs, trace, json, html, calibrate;
};

/// What is wrong with options, before anything is done; so that a file that
/// cannot be read or written is told before minutes of measuring.
llvm::Error checkOptions(const DriverOptions &options);
llvm::Error checkOptions(const StepOptions &options);
llvm::Error checkOptions(const OutputOptions &options);

/// A file that can be read, or could be written; empty passes.
llvm::Error checkReadable(const std::string &path);
llvm::Error checkWritable(const std::string &path);

} // namespace baechi

#endif // BAECHI_DRIVER_INPUT_OPTIONS_H

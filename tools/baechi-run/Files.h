//===- Files.h - What a run leaves behind -*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef BAECHI_TOOLS_BAECHI_RUN_FILES_H
#define BAECHI_TOOLS_BAECHI_RUN_FILES_H

#include "Execution.h"
#include "Options.h"
#include "Report.h"
#include "mlir/IR/BuiltinOps.h"

namespace baechi {

/// A run that has ended well.
struct FinishedRun {
  mlir::ModuleOp module;
  const placement::Machine &machine;
  const RunReport &report;
  const Execution &placed;
  const Execution *single; ///< null: it was not run
};

/// Writes what the options ask for: results, trace, machine, JSON and page.
/// --calibrate needs the single device's steps.
llvm::Error writeFiles(const RunOptions &options, const FinishedRun &run);

/// Flushes the standard output; what could not be written to it is an error.
llvm::Error endOutput();

} // namespace baechi

#endif // BAECHI_TOOLS_BAECHI_RUN_FILES_H

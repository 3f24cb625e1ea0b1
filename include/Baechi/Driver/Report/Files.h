//===- Files.h - What a run leaves behind -*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef BAECHI_DRIVER_REPORT_FILES_H
#define BAECHI_DRIVER_REPORT_FILES_H

#include "Baechi/Driver/Execution/Execution.h"
#include "Baechi/Driver/Input/Listener.h"
#include "Baechi/Driver/Input/Options.h"
#include "Baechi/Driver/Report/Report.h"
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

/// The report as text of JSON, with its line's end.
std::string formatJson(const RunReport &report);

/// Writes what the options ask for: results, trace, machine, JSON and page; a
/// report for '-', the standard output, is the caller's. A calibrated machine
/// needs the single device's steps.
llvm::Error writeFiles(const OutputOptions &options, const FinishedRun &run,
                       Listener &listener);

} // namespace baechi

#endif // BAECHI_DRIVER_REPORT_FILES_H

//===- StepRun.h - Steps are run and compared -------------------*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef BAECHI_DRIVER_STEPS_STEPRUN_H
#define BAECHI_DRIVER_STEPS_STEPRUN_H

#include "Baechi/Driver/Compilation/Compilation.h"
#include "Baechi/Runtime/Fault.h"
#include "Baechi/Runtime/Ranks.h"

namespace baechi {

/// Fails where the archive \p inputs, unless empty, does not have arguments of
/// the step of \p module (FirstValues, Inputs.h).
llvm::Error checkFirstValues(mlir::ModuleOp module, const std::string &inputs,
                             int64_t replicas = 1);

/// Gives all arguments of a program of \p module their first values, those of
/// the archive \p inputs or the model's; returns how many were invented. Of
/// several \p replicas with values of their own, those of the first one.
llvm::Expected<size_t> setFirstValues(mlir::ModuleOp module,
                                      const std::string &inputs,
                                      Execution &execution,
                                      int64_t replicas = 1);

/// Runs a compiled model for some steps, beside the same on one device, and
/// reports.
class StepRun {
public:
  /// \p ranks: the processes that run it together; null: this one alone.
  StepRun(Compilation &compilation, StepOptions options, Listener &listener,
          std::shared_ptr<runtime::Ranks> ranks = nullptr)
      : compilation(compilation), options(std::move(options)),
        listener(listener), ranks(std::move(ranks)) {}

  /// Runs all steps; after an injected fault once more from the start.
  llvm::Error run();

  /// The same again from the first values of \p inputs, on what is started
  /// already; the report is of all calls.
  llvm::Error call(std::string inputs, int64_t steps);

  /// What run() found, with what the compilation did.
  RunReport report() const;

  const Execution &placed() const { return *placedProgram; }
  /// Null: it was not run; the report says why.
  const Execution *single() const { return singleProgram.get(); }

private:
  llvm::Error runSteps();
  llvm::Error runOverlapped(std::optional<size_t> loss);
  llvm::Error startPlaced();
  /// False, with the reason in the report, when there is nothing to compare
  /// with.
  llvm::Expected<bool> startSingle();
  /// Gives the single device the placed program's arguments.
  llvm::Error copyArguments();
  std::optional<size_t> findLoss();
  void compareLosses();

  Compilation &compilation;
  StepOptions options;
  Listener &listener;
  std::shared_ptr<runtime::Ranks> ranks;
  std::unique_ptr<Execution> placedProgram, singleProgram;
  std::shared_ptr<runtime::NthCallFails> faults;
  RunReport found;
};

} // namespace baechi

#endif // BAECHI_DRIVER_STEPS_STEPRUN_H

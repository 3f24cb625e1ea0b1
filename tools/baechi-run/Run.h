//===- Run.h - One run of the tool ------------------------------*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef BAECHI_TOOLS_BAECHI_RUN_RUN_H
#define BAECHI_TOOLS_BAECHI_RUN_RUN_H

#include "Baechi/Pipelines/HostCompiler.h"
#include "Execution.h"
#include "Inputs.h"
#include "Options.h"
#include "Report.h"
#include "mlir/IR/Diagnostics.h"
#include "llvm/Support/SourceMgr.h"
#include <map>

namespace baechi {

/// Says an error and ends the tool.
extern llvm::ExitOnError exitOnError;

/// One run of the tool: a model from its file to the report.
class Run {
public:
  /// \p ranks: the processes that run it together; null: this one alone.
  Run(RunOptions options, std::shared_ptr<runtime::Ranks> ranks)
      : options(std::move(options)), ranks(std::move(ranks)) {}

  /// The exit status: 1 when results are not what they should be.
  int operator()();

private:
  /// Passes have said what is wrong.
  [[noreturn]] void stop() { exit(1); }

  void compileModel();
  void measureMachine();
  bool hasDeviceOf(llvm::StringRef kind) const;
  void findCosts();
  /// Runs the model on one device for what its kernels take within a step.
  llvm::Error refineCosts(llvm::StringRef kind, Profile &profile);
  /// Without the diagnostics.
  llvm::LogicalResult quietly(llvm::function_ref<llvm::LogicalResult()> run);
  int emitLibrary();
  void execute();
  llvm::Error runSteps();
  /// Gives all arguments their first values; returns how many were invented.
  llvm::Expected<size_t> setArguments(Execution &execution);
  /// False, with the reason in the report, when there is nothing to compare
  /// with.
  bool startSingle();
  /// The first device of its kind, with the memory that all such devices have.
  placement::Device withAllMemory(llvm::StringRef kind);
  /// The same model on one device; null when that cannot hold it.
  llvm::Expected<std::unique_ptr<Execution>>
  createSingle(const placement::Device &device);
  std::optional<size_t> findLoss();
  void compareLosses();
  int tell();

  RunOptions options;
  std::shared_ptr<runtime::Ranks> ranks;
  placement::Machine machine;
  std::unique_ptr<mlir::MLIRContext> context;
  llvm::SourceMgr sources;
  std::unique_ptr<mlir::SourceMgrDiagnosticHandler> handler;
  std::unique_ptr<HostCompiler> compiler;
  std::unique_ptr<Execution> placed, single;
  std::map<std::string, CompiledProgram> singlePrograms; ///< a kind each
  std::shared_ptr<runtime::NthCallFails> faults;
  std::vector<double> expected; ///< the reference's losses
  RunReport report;
};

} // namespace baechi

#endif // BAECHI_TOOLS_BAECHI_RUN_RUN_H

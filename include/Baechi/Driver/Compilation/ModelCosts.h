//===- ModelCosts.h - What a model's kernels take ---------------*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef BAECHI_DRIVER_COMPILATION_MODELCOSTS_H
#define BAECHI_DRIVER_COMPILATION_MODELCOSTS_H

#include "Baechi/Costs/Measure/KernelCosts.h"
#include "Baechi/Driver/Execution/Execution.h"
#include "Baechi/Driver/Input/Listener.h"
#include "Baechi/Driver/Input/Options.h"
#include "Baechi/Driver/Report/Report.h"
#include "Baechi/Pipelines/HostCompiler.h"
#include "Baechi/Placement/Model/Problem.h"

namespace baechi {

class KernelChoices;

/// Whether steps may run before the program is complete: the host program
/// computes no part of them.
bool canRunSteps(mlir::ModuleOp module);

/// What the kernels of a model take, however it is cut, and which code computes
/// them: what the profile's file knows of it, and what is measured because the
/// file lacks it.
class ModelCosts {
public:
  /// Whose costs are found; all of it outlives them.
  struct Context {
    DriverOptions &asked;       ///< costs become the roofline's without others
    placement::Machine &target; ///< its links are measured
    Listener &listener;
    std::shared_ptr<CompileThreads> threads;
    /// Of the model, whole and in pieces.
    std::shared_ptr<LoweredKernels> lowered;
    /// Ends the phase that a compiler has begun.
    std::function<void()> endPhases;
  };

  /// Steps on one device, which tell what kernels take within them.
  struct SingleSteps {
    /// The current model on all memory of a kind of devices; null: that cannot
    /// hold it.
    llvm::function_ref<llvm::Expected<std::unique_ptr<Execution>>(
        llvm::StringRef kind)>
        create;
    SetArguments setArguments;
  };

  explicit ModelCosts(Context context)
      : asked(context.asked), target(context.target),
        listener(context.listener), threads(std::move(context.threads)),
        lowered(std::move(context.lowered)),
        endPhases(std::move(context.endPhases)) {}

  /// Reads the profile's file, if there is one.
  void readProfile();
  /// What is wrong with that file; empty: nothing.
  const std::string &whyNotRead() const { return keptError; }
  /// As the file was when it was read, with what was measured since.
  const Profile &profile() const { return kept; }
  /// What the profile knows the choice of kernels' code by; empty: costs are
  /// not measured.
  llvm::StringRef choiceProgram() const { return choiceName; }
  const KernelCostCounts &counts() const { return counted; }

  /// Measures links that are only assumed, unless the profile has what was
  /// measured before, and, \p always, the runtime.
  llvm::Error measureMachine(bool always);
  /// Tells \p module what moving messages of simulated links takes, where they
  /// are simulated and that shares the devices' processors (kCarrierCosts).
  void tellCarrier(mlir::ModuleOp module) const;
  /// What that takes for a message, without its bytes; 0: nothing is known.
  int64_t carrierMessageNs() const;
  /// Measures it, unless the profile has it or, \p isAnew, all the same.
  llvm::Error measureCarrier(bool isAnew);

  /// Annotates the operators of \p compiler's model with costs, measured or
  /// estimated, and chooses its kernels' code.
  llvm::Error find(HostCompiler &compiler, const SingleSteps &steps);
  /// Chooses the code of \p compiler's kernels for host devices, by measuring
  /// them where there is a choice. False: steps have nothing to tell, as all is
  /// known of what the kernels take within them.
  llvm::Expected<bool> chooseCode(HostCompiler &compiler);
  /// Measures the best that the processors can do, if it is to be known.
  void measurePeaks();
  /// Counts what the profile has of the kernels of \p module, and says what was
  /// measured beside other work.
  void count(mlir::ModuleOp module);
  /// Counts it, and says nothing.
  void recount(mlir::ModuleOp module);
  /// Adds what was measured to the profile's file; without one, makes it.
  void keep();

  /// Whether another compilation of \p module, with what is in the profile now,
  /// would measure nothing.
  bool isSettled(mlir::ModuleOp module) const;
  /// Whether nothing of it would be measured.
  bool isKnown(mlir::ModuleOp module) const;

private:
  llvm::Error measureHost(bool always);
  /// Takes what --step-times says, if it was given; false: it was not.
  llvm::Expected<bool> takeGivenTimes();
  /// Measures what the profile lacks of a kind's kernels, as far as the budget
  /// goes; \p choicesOnly: where there are several implementations.
  llvm::Error measureKernels(HostCompiler &compiler, const KernelCosts &costs,
                             bool choicesOnly);
  /// Runs the model on one device for what its kernels take within a step;
  /// false where it has not the memory for it.
  llvm::Expected<bool> measureSteps(HostCompiler &compiler,
                                    llvm::StringRef kind,
                                    const SingleSteps &steps);
  /// The kernels that code is chosen for, before it is.
  KernelChoices choicesOf(mlir::ModuleOp module);
  /// Has \p choices as the profile has them of before, unless all is measured
  /// anew.
  void takeKeptChoice(KernelChoices &choices);
  /// Keeps what was chosen, in the file, too; where another process was first
  /// there, its choice is taken.
  mlir::LogicalResult settleChoice(HostCompiler &compiler,
                                   KernelChoices &choices);

  DriverOptions &asked;
  placement::Machine &target;
  Listener &listener;
  std::shared_ptr<CompileThreads> threads;
  std::shared_ptr<LoweredKernels> lowered;
  std::function<void()> endPhases;

  Profile kept;
  std::string keptError;
  std::string choiceName;
  KernelCostCounts counted;
  /// As kCarrierCosts; 0 and 0: not asked for.
  std::pair<int64_t, int64_t> carrier = {0, 0};
  bool stepsMeasured = false, machineMeasured = false, peaksMeasured = false;
};

} // namespace baechi

#endif // BAECHI_DRIVER_COMPILATION_MODELCOSTS_H

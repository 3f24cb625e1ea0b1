//===- ModelForms.h - A model, and what is formed of it ---------*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef BAECHI_DRIVER_FORMS_MODELFORMS_H
#define BAECHI_DRIVER_FORMS_MODELFORMS_H

#include "Baechi/Analysis/SumOrders.h"
#include "Baechi/Driver/Input/Listener.h"
#include "Baechi/Driver/Input/Options.h"
#include "Baechi/Pipelines/HostCompiler.h"
#include "Baechi/Placement/Model/Problem.h"

namespace baechi {

/// A model before it is cut and kernels are formed, and what is made of it:
/// compilers of the model, whole and in pieces.
class ModelForms {
public:
  /// What outlives them.
  struct Context {
    const DriverOptions &asked;
    const placement::Machine &target;
    Listener &listener;
    std::shared_ptr<CompileThreads> threads;
    /// Of the model, whole and in pieces.
    std::shared_ptr<LoweredKernels> lowered;
  };

  explicit ModelForms(Context context)
      : asked(context.asked), target(context.target),
        listener(context.listener), threads(std::move(context.threads)),
        lowered(std::move(context.lowered)) {}

  /// The model; null before it is set, and after clear().
  mlir::ModuleOp model() const { return *uncut; }
  /// Gives what was the model before.
  mlir::OwningOpRef<mlir::ModuleOp>
  setModel(mlir::OwningOpRef<mlir::ModuleOp> model) {
    return std::exchange(uncut, std::move(model));
  }
  /// Nothing more is formed.
  void clear() { uncut = nullptr; }

  const DriverOptions &options() const { return asked; }
  const placement::Machine &machine() const { return target; }
  Listener &heard() const { return listener; }

  using Compiler = std::unique_ptr<HostCompiler>;
  /// Whether what was cut is to have a compiler, as HostCompiler::create().
  using IsWanted = llvm::function_ref<bool(const SplitReport &)>;

  /// The model, cut as \p choice says. Fails after a diagnostic, but where it
  /// is not wanted.
  mlir::FailureOr<Compiler> form(const SplitChoice &choice,
                                 IsWanted isWanted = nullptr) const {
    return formOf(*uncut, choice, isWanted);
  }
  /// The same of another \p model, such as that with its checkpoints.
  mlir::FailureOr<Compiler> formOf(mlir::ModuleOp model,
                                   const SplitChoice &choice,
                                   IsWanted isWanted = nullptr) const;
  /// \p model, cut as \p choice says, before kernels are formed; null after an
  /// error.
  mlir::OwningOpRef<mlir::ModuleOp> cut(mlir::ModuleOp model,
                                        const SplitChoice &choice) const;
  /// Forms kernels of what was \p cut, as far as their code is not looked at,
  /// with the roofline's costs.
  mlir::LogicalResult outlineKernels(mlir::ModuleOp cut) const;
  /// How its sums are added up; nullopt after an error.
  std::optional<SumOrders> sumOrders(const SplitChoice &choice) const;

  /// Whether a plan of \p compiler's step fits the machine, without a word.
  bool fits(HostCompiler &compiler) const;
  /// Whether one does where values are computed again or tensors wait in the
  /// machine's pool, also where that was not asked for.
  bool fitsRewritten(HostCompiler &compiler) const;
  /// Whether that could need less than it does where it does not fit: a device
  /// may be too small for all tensors at once, and all devices hold the
  /// arguments.
  bool isMemoryTight(HostCompiler &compiler) const;
  /// What the model cut as \p choice says holds at least on the one host device
  /// that computes, soon known; nullopt: no bound is.
  std::optional<int64_t> leastBytesOnHost(const SplitChoice &choice) const;
  /// The same on \p machine, as far as was asked for, and what is wrong is
  /// said.
  mlir::LogicalResult fitsFitted(HostCompiler &compiler,
                                 const placement::Machine &machine) const;
  /// The step that \p compiler's kernels take as far as the roofline tells,
  /// with what memory asks for, without a search: whether it fits at all.
  mlir::FailureOr<int64_t> predictFitting(HostCompiler &compiler) const {
    return predictFitting(compiler, target);
  }
  /// The same with the memories of \p machine.
  mlir::FailureOr<int64_t>
  predictFitting(HostCompiler &compiler,
                 const placement::Machine &machine) const;

  /// Without what is said and is no error.
  llvm::LogicalResult
  quietly(llvm::function_ref<llvm::LogicalResult()> run) const;

private:
  const DriverOptions &asked;
  const placement::Machine &target;
  Listener &listener;
  std::shared_ptr<CompileThreads> threads;
  std::shared_ptr<LoweredKernels> lowered;
  mlir::OwningOpRef<mlir::ModuleOp> uncut;
};

} // namespace baechi

#endif // BAECHI_DRIVER_FORMS_MODELFORMS_H

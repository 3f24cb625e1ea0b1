//===- HostCompiler.h - From a model to running host code -*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef BAECHI_PIPELINES_HOSTCOMPILER_H
#define BAECHI_PIPELINES_HOSTCOMPILER_H

#include "Baechi/Analysis/HeldTensors.h"
#include "Baechi/Conversion/HostJit/HostJit.h"
#include "Baechi/Conversion/Kernels/Cuda/CudaKernels.h"
#include "Baechi/Conversion/Kernels/Host/LoweredKernels.h"
#include "Baechi/Costs/Profile.h"
#include "Baechi/Pipelines/CompileOptions.h"
#include "Baechi/Placement/Model/Problem.h"
#include "Baechi/Transforms/Passes.h"
#include "Baechi/Transforms/SplitReport.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/OwningOpRef.h"
#include "llvm/Support/JSON.h"
#include <functional>
#include <optional>

namespace baechi {

/// A program whose code is in memory.
struct CompiledProgram {
  std::string manifestText() const;

  /// docs/program-format.md.
  llvm::json::Object manifest;
  /// Operators that the placer saw, after grouping.
  int64_t groups = 0;
  /// Placements that were planned for until one fit.
  int placements = 1;
  /// Of a program for one device that was made instead.
  std::optional<GivenUp> givenUp;
  /// Where the step as it is does not fit.
  std::optional<MemoryFit> memoryFit;
  /// The graph of the step that was placed, where that may have operators which
  /// the model has not: some are computed again, or move what waits in a pool.
  std::optional<placement::Graph> rewritten;
  /// What the arenas hold, a device each; of what was planned in this process.
  std::vector<std::vector<HeldTensor>> held;
  /// The step's prediction; by the placers' rules where it was not simulated.
  int64_t predictedNs = 0;
  /// From one step to the next of steps that overlap, where several host
  /// devices and no others compute.
  std::optional<int64_t> periodNs;
  /// The order of messages between replicas, as asked for or "fifo" where that
  /// is predicted to be faster; empty: as planned.
  std::string exchange;
  /// The step's prediction on one device without a limit.
  int64_t singleDeviceNs = 0;
  /// Seconds of the placing pass, and of all that follows the kernels' code.
  double placeSeconds = 0, compileSeconds = 0;
};

/// Compiles one model for any number of machines of host and CUDA devices: its
/// kernels are formed and measured once, and compiled once for each kind.
/// Diagnostics go to the context's handler; the functions fail after having
/// emitted at least one.
class HostCompiler {
public:
  /// \p model: linalg on tensors with one public function. \p options: the
  /// JIT's. \p products: how GPUs compute products; null where there are none.
  /// \p splits: how operators are cut before. \p lowered: kernels whose
  /// lowering is shared with others, of the same context; null: with nobody.
  /// \p isWanted: of what was cut, before kernels are formed; where it is not,
  /// there is no compiler, and no diagnostic.
  static mlir::FailureOr<std::unique_ptr<HostCompiler>>
  create(mlir::OwningOpRef<mlir::ModuleOp> model, HostJitOptions options,
         const CudaProductOptions *products = nullptr,
         const SplitChoice &splits = {},
         std::shared_ptr<LoweredKernels> lowered = nullptr,
         llvm::function_ref<bool(const SplitReport &)> isWanted = nullptr);

  /// Costs from \p profile, or the roofline's where it is null; selects each
  /// kernel's fastest implementation. Called again, it replaces the costs that
  /// it wrote; the implementations stay.
  mlir::LogicalResult annotate(const Profile *profile);

  /// Begins to compile the kernels whose code for host devices no costs
  /// choose, as there is one implementation. Other threads go on with it.
  mlir::LogicalResult beginKernels() { return beginKernels(/*choices=*/false); }
  /// Compiles the kernels for host devices, unless that is done; compile() does
  /// so, too.
  mlir::LogicalResult compileKernels();

  /// How kernels become code for CUDA devices: functions NAME__cuda. Until set,
  /// lowerKernelsToCuda().
  using CudaLowering =
      std::function<mlir::LogicalResult(mlir::ModuleOp kernels)>;
  void setCudaLowering(CudaLowering lowering) {
    cudaLowering = std::move(lowering);
  }

  /// Is told what begins: "compiling kernels", "placing", "lowering"; and of
  /// what has \p total parts how many are done.
  using PhaseObserver =
      std::function<void(llvm::StringRef phase, size_t done, size_t total)>;
  void setPhaseObserver(PhaseObserver observer) {
    phaseObserver = std::move(observer);
  }

  /// Places as \p options ask, partitions, plans and compiles for \p machine,
  /// whatever theirs is. \p prefix begins the program's symbols; a compiler
  /// takes each only once. \p isLast: where it does not fit, nothing else is
  /// tried; else limits may be left out that would fit.
  mlir::FailureOr<CompiledProgram> compile(const placement::Machine &machine,
                                           const CompileOptions &options,
                                           llvm::StringRef prefix,
                                           bool isLast = true);
  /// The same without the kernels' code: \p code is what calls it, of which
  /// addCode() makes the program's. So of several plans only those that run
  /// have code.
  mlir::FailureOr<CompiledProgram> plan(const placement::Machine &machine,
                                        const CompileOptions &options,
                                        llvm::StringRef prefix,
                                        mlir::OwningOpRef<mlir::ModuleOp> &code,
                                        bool isLast = true);
  /// Of the last program that did not fit: whether limits were left out.
  bool hasLeftOut() const { return leftOut; }
  mlir::LogicalResult addCode(const placement::Machine &machine,
                              mlir::ModuleOp code, CompiledProgram &program);

  /// Whether the placer alone, without a search and without computing anything
  /// again, finds a placement whose memory plan fits \p machine; where the
  /// costs are not known yet, with the roofline's. Compiles nothing.
  mlir::LogicalResult fits(const placement::Machine &machine,
                           CompileOptions options);
  /// The step, in ns, that the placer finds for \p machine as \p options ask;
  /// where the costs are not known yet, with the roofline's. Fails where it
  /// finds none without computing anything again, or, \p mayRewrite, as far as
  /// \p options allow, with that. Compiles nothing.
  mlir::FailureOr<int64_t> predict(const placement::Machine &machine,
                                   CompileOptions options,
                                   bool mayRewrite = false) {
    return predict(machine, std::move(options), mayRewrite,
                   /*anyWillDo=*/false);
  }
  /// Whether there is one that may be rewritten.
  mlir::LogicalResult fitsRewritten(const placement::Machine &machine,
                                    CompileOptions options) {
    return predict(machine, std::move(options), /*mayRewrite=*/true,
                   /*anyWillDo=*/true);
  }

  HostJit &jit() { return *hostJit; }
  /// The module: kernels and the step that calls them.
  mlir::ModuleOp module() { return *model; }

  /// What was cut before kernels were formed.
  const SplitReport &splits() const { return splitReport; }
  /// The passes that did it, with their options.
  llvm::ArrayRef<std::string> cutting() const { return cuttingPasses; }
  size_t kernels() const { return kernelCount; }
  /// Kernels that were taken from the store.
  size_t kernelsFromStore() const { return storedCount; }
  /// Operators of the model as it came, and calls of kernels.
  size_t operatorsBefore() const { return operatorCount; }
  size_t operatorsFormed() const { return callCount; }
  double formSeconds() const { return secondsToForm; }
  double kernelSeconds() const { return secondsForKernels; }

private:
  mlir::FailureOr<int64_t> predict(const placement::Machine &machine,
                                   CompileOptions options, bool mayRewrite,
                                   bool anyWillDo);
  HostCompiler() = default;
  mlir::LogicalResult form(const CudaProductOptions *products,
                           const SplitChoice &splits,
                           llvm::function_ref<bool(const SplitReport &)>);
  void beginPhase(llvm::StringRef phase, size_t done = 0, size_t total = 0) {
    if (phaseObserver)
      phaseObserver(phase, done, total);
  }
  /// \p choices: all that were not begun.
  mlir::LogicalResult beginKernels(bool choices);
  mlir::LogicalResult compileCudaKernels();
  /// What the passes that place are, but for where the step does not fit.
  static std::string placingAs(mlir::MLIRContext *context,
                               CompileOptions options);
  /// Writes what GPU code of the kernels needs into a copy of the module.
  mlir::LogicalResult addCudaNeeds(mlir::ModuleOp copy);

  mlir::OwningOpRef<mlir::ModuleOp> model;
  std::unique_ptr<HostJit> hostJit;
  std::shared_ptr<LoweredKernels> lowered;
  CudaLowering cudaLowering;
  PhaseObserver phaseObserver;
  std::function<bool()> stopped;
  /// The last prediction's placement and plan, which a program with the same
  /// costs takes.
  struct Predicted {
    mlir::Attribute machine;
    std::string placing;
    mlir::OwningOpRef<mlir::ModuleOp> placed = nullptr;
    PlaceAndPlanReport report = {};
  };
  std::optional<Predicted> predicted;
  /// Of the model's kernels, once one was asked for.
  std::optional<CudaNeeds> cudaNeeds;
  llvm::DenseSet<mlir::Operation *> begunKernels;
  bool kernelsCompiled = false, cudaKernelsCompiled = false, annotated = false;
  bool leftOut = false;
  /// The operators whose costs annotate() writes.
  llvm::SmallVector<mlir::Operation *> ownCosts;
  SplitReport splitReport;
  std::vector<std::string> cuttingPasses;
  size_t kernelCount = 0, storedCount = 0, operatorCount = 0, callCount = 0;
  double secondsToForm = 0, secondsForKernels = 0;
};

} // namespace baechi

#endif // BAECHI_PIPELINES_HOSTCOMPILER_H

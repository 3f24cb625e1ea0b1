//===- Execution.h - A compiled program in execution -*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef BAECHI_DRIVER_EXECUTION_EXECUTION_H
#define BAECHI_DRIVER_EXECUTION_EXECUTION_H

#include "Baechi/Costs/Measure/Calibrate.h"
#include "Baechi/Pipelines/HostCompiler.h"
#include "Baechi/Runtime/Session.h"
#include "Baechi/Target/Npz.h"
#include "llvm/Support/Error.h"

namespace baechi {

/// What was measured over the counted steps of one program.
struct Measurement {
  std::vector<int64_t> wallNs; ///< a step each
  /// They were replayed as graphs of GPUs' work, in which operators have no
  /// times: those are of another step.
  bool replayed = false;
  std::vector<double> busyNs;     ///< a device each, mean over steps
  std::vector<int64_t> sentBytes; ///< a device each, one step
  std::vector<int64_t> lentBytes; ///< of these
  /// A device each: what its memory holds beside the arenas
  /// (runtime::Session::besideArena).
  std::vector<int64_t> besideArena;
  /// Of simulated links, in all steps together.
  runtime::LaneRecord links;

  double medianNs() const { return quantileNs(0.5); }
  /// The step that \p share of all are not slower than; 0 when there is none.
  double quantileNs(double share) const;
  double meanNs() const;
};

class Execution {
public:
  /// Starts the devices of \p program, whose code \p jit holds, on \p ranks if
  /// there are several.
  static llvm::Expected<std::unique_ptr<Execution>>
  create(HostJit &jit, const CompiledProgram &program, double watchdogSeconds,
         std::shared_ptr<runtime::FaultInjector> faults = nullptr,
         const std::shared_ptr<runtime::Ranks> &ranks = nullptr);
  /// The same of a program's \p manifest.
  static llvm::Expected<std::unique_ptr<Execution>>
  create(HostJit &jit, const std::string &manifest, double watchdogSeconds,
         std::shared_ptr<runtime::FaultInjector> faults = nullptr,
         const std::shared_ptr<runtime::Ranks> &ranks = nullptr);

  /// Where a device was left behind in a kernel its code stays for good.
  ~Execution();

  /// Gives argument \p index a value.
  llvm::Error setArgument(size_t index, const Array &value);

  /// Runs one step; counts it unless it is a warm-up. GPUs replay it as users'
  /// programs do, but for one counted step, which tells operators' times.
  llvm::Error step(bool counted);

  /// Runs steps that overlap, and counts what one takes on average, unless they
  /// are a warm-up. The values of scalar f32 result \p loss, one a step.
  llvm::Expected<std::vector<float>>
  stepsOverlapped(int64_t count, bool counted, std::optional<size_t> loss);

  /// The value of a result, or of an argument, now.
  llvm::Expected<Array> result(size_t index) const;
  llvm::Expected<Array> argument(size_t index) const;

  const runtime::Program &program() const { return session->program(); }
  bool usable() const { return session->usable(); }
  const runtime::Timeline &timeline() const { return session->timeline(); }
  /// Operators' times in it become those of repeats (runtime::Session).
  void repeatOperators() {
    replays = false;
    session->repeatOperators();
  }
  /// Of the fastest counted step: what else the machine did shows least there.
  const runtime::Timeline &fastest() const { return fastestStep; }
  Measurement measurement() const;
  /// The same, for what fits machines to it; as long as this lives.
  MeasuredSteps measured() const;

private:
  void noteBytes();
  void noteLinks();

  std::unique_ptr<runtime::Session> session;
  HostJit *code = nullptr;
  /// Steps without times are graphs of GPUs' work.
  bool replays = false;
  /// Counted steps with operators' times.
  size_t timedSteps = 0;
  Measurement sums;
  runtime::Timeline fastestStep;
};

/// The first result (or updated argument) in which the two differ by a bit;
/// empty when they agree.
llvm::Expected<std::string> firstDifference(const Execution &a,
                                            const Execution &b);

/// Gives a first value to every argument of a program.
using SetArguments = llvm::function_ref<llvm::Error(Execution &)>;

} // namespace baechi

#endif // BAECHI_DRIVER_EXECUTION_EXECUTION_H

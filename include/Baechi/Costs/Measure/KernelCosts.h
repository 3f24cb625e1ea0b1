//===- KernelCosts.h - Kernels' times, a kind of devices each -*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// One interface for each kind of devices: whose rows of a profile are this
/// machine's, which code of a kernel they are of, and measuring what lacks.
///
//===----------------------------------------------------------------------===//
#ifndef BAECHI_COSTS_MEASURE_KERNELCOSTS_H
#define BAECHI_COSTS_MEASURE_KERNELCOSTS_H

#include "Baechi/Conversion/HostJit/CompileThreads.h"
#include "Baechi/Conversion/Kernels/Host/LoweredKernels.h"
#include "Baechi/Costs/Measure/Rounds.h"
#include "Baechi/Costs/Profile.h"
#include "mlir/IR/BuiltinOps.h"
#include "llvm/ADT/STLFunctionalExtras.h"
#include <functional>
#include <memory>

namespace baechi {

struct MeasureOptions {
  /// How often each row is measured, and for how long all; the estimated step
  /// is the module's.
  RoundOptions rounds;
  /// Only kernels that are to be had in several implementations: what the
  /// others take, steps will tell.
  bool choicesOnly = false;
  /// Not kernels with a time within a step: its code stays what it was there.
  bool keepsCode = false;
  /// Warn of each kernel that gets no row, with the reason.
  bool warnOfUnmeasured = true;
  /// What the code comes from where it is lowered already, and goes to; of the
  /// module's context. Null: each call lowers for itself.
  LoweredKernels *lowered = nullptr;
  /// The threads that compile, which leave a processor to what is timed. Null:
  /// each call has its own.
  std::shared_ptr<CompileThreads> workers;
  /// Called, if anything is compiled to be timed, while other threads do so. It
  /// fails after a diagnostic, and so does the call then. Empty: nothing.
  std::function<mlir::LogicalResult()> meanwhile;
  /// A folder of compiled functions (HostJitOptions). Empty: none.
  std::string store;
  /// Asked often, on any thread: once it says true, the call ends soon with an
  /// error and adds no row. Empty: nobody stops it.
  std::function<bool()> stopped;
};

/// What measures kernels on the devices of one kind.
class KernelCosts {
public:
  using Progress = llvm::function_ref<void(size_t done, size_t total)>;

  virtual ~KernelCosts() = default;

  /// "host".
  virtual llvm::StringRef kind() const = 0;
  /// What measure() does, for people who wait.
  virtual llvm::StringRef phase() const = 0;

  /// Makes this machine the one that rows of this kind are of: those of another
  /// one go, with a warning. Fails, and does nothing, without such a device.
  virtual llvm::Error adopt(mlir::ModuleOp module, Profile &profile) const = 0;

  /// What a profile calls the code of \p kernel.
  virtual std::string implementationOf(mlir::func::FuncOp kernel) const = 0;

  /// Adds the rows that \p profile, once adopted, lacks, and replaces those
  /// that were disturbed; gives their number.
  virtual mlir::FailureOr<size_t> measure(mlir::ModuleOp module,
                                          Profile &profile,
                                          const MeasureOptions &options,
                                          Progress progress) const = 0;
};

/// Measures every implementation of every kernel of `module` that `profile` has
/// no row for, and adds the rows. The kernels run on one thread that is bound
/// to a processor, on buffers that come from beyond the second-level cache, as
/// they mostly do within a step. Floating-point operands are random, integers
/// are indices that the kernel's gathers accept.
///
/// Kernels that such operands might crash or keep busy for ever (divisions of
/// integers, computed positions, scf.while), and those too large for the
/// memory, get no row but a warning. Rows are of one compiler's kernels, too
/// (Profile::compiler).
///
/// Rows are measured in several rounds, so that those that are compared with
/// each other meet the same disturbances; the costliest of the step first, as
/// far as the budget goes. What was interrupted is measured again, and where
/// that was in vain, the row says so. `progress` is told how much is done,
/// as a number of rows, often and at the end; it is called on the thread that
/// measures. Rows of gemmLibraries() are left out, with a warning, where the
/// library is missing.
const KernelCosts &hostCosts();

/// Lets \p kernels know the scratch that rows of this host's code say.
void noteScratch(const Profile &profile, LoweredKernels &kernels);

/// Searches the fastest algorithm of every product that has no row, on the
/// first GPU, and times the generated code and cuDNN's of convolutions.
const KernelCosts &cudaCosts();

/// One for each kind of devices that programs run on.
llvm::ArrayRef<const KernelCosts *> kernelCosts();
const KernelCosts &kernelCostsOf(llvm::StringRef kind);

/// The row of a kernel's code, which nothing was measured of yet.
ProfileRow newRow(mlir::func::FuncOp kernel, const KernelCosts &costs,
                  llvm::StringRef implementation);

/// Adds \p row, or puts it in the place of one of the same code; what is known
/// of that within steps stays.
void addRow(Profile &profile, ProfileRow row);

} // namespace baechi

#endif // BAECHI_COSTS_MEASURE_KERNELCOSTS_H

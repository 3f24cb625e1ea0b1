//===- Profile.h - Measured times of kernels -*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef BAECHI_COSTS_PROFILE_H
#define BAECHI_COSTS_PROFILE_H

#include "Baechi/Placement/Model/Problem.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "llvm/Support/Error.h"
#include "llvm/Support/JSON.h"
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace baechi {

/// One kernel's measured time with one implementation on one device kind.
struct ProfileRow {
  std::string kernel; ///< its name, for people
  std::string hash;   ///< kernelHash: what the row is found by
  /// "generated", "openblas", "onednn"; on GPUs "generated", "cublaslt" or
  /// "cudnn" or, for rounded factors, "cublaslt-tf32" and the like.
  std::string implementation;
  std::string kind; ///< of the device, "host"
  int64_t medianNs = 0;
  /// Half the distance between the quartiles, ns.
  int64_t spreadNs = 0;
  int64_t samples = 0;
  int64_t scratchBytes = 0;
  /// Of cuBLASLt and cuDNN, whose workspace the scratch is: what was the
  /// fastest. Empty: not known, or none.
  std::vector<int64_t> algorithm = {};
  /// What it takes within a step, where other operators fill the caches; -1:
  /// not known.
  int64_t stepNs = -1;
  /// Of one execution, for fitting a roofline; -1: not known.
  int64_t flops = -1;
  int64_t bytes = -1;
  /// Other work kept the processor from it whenever it was measured: the times
  /// are too long, and measured again when they are needed next.
  bool disturbed = false;     ///< medianNs
  bool stepDisturbed = false; ///< stepNs

  /// What an operator that it is the kernel of costs.
  int64_t costNs() const { return stepNs >= 0 ? stepNs : medianNs; }
};

/// The measured step of a program that was placed: of a step that was compiled
/// in several ways, the fastest is kept.
struct PlanRow {
  std::string program; ///< hash of what the devices do
  int64_t stepNs = 0;  ///< the fastest of some steps
};

/// Which code computes the kernels of a program that can be had in several
/// implementations. It decides the last bits of results, so it stays what it
/// was first, whatever is measured later (KernelChoices.h).
struct ProgramChoice {
  std::string program; ///< hash of these kernels' hashes
  /// By the kernels' hashes.
  std::map<std::string, std::string> implementations;

  bool operator==(const ProgramChoice &) const = default;
};

/// What one core of the host reaches at best.
struct HostPeaks {
  double flopsPerSecond = 0; ///< of the fastest matrix product, float32
  double bytesPerSecond = 0; ///< of a copy from memory to memory, both counted
};

/// What messages between the host's devices, and the runtime itself, take with
/// so many processors to run on.
struct HostTimes {
  int64_t cores = 1;
  /// As measured: nothing of what devices share.
  placement::RuntimeCosts runtime = {};
  /// Between two of them; nullopt: not measured.
  std::optional<placement::Link> link = {};
  /// What the thread that moves the messages of simulated links takes of a
  /// processor for each, and how fast it copies; 0: not measured.
  int64_t carrierNs = 0;
  int64_t carrierBytesPerUs = 0;
};

/// A file keeps so many rows that no choice names, and as many plans.
inline constexpr size_t kMostProfileRows = 20000;

/// The profile file (docs/profile-format.md). Rows are found by the kernel's
/// text, so that one profile serves every model that has the kernel.
struct Profile {
  std::vector<ProfileRow> rows;
  /// What the rows of kind "host" were measured on (HostJit::hostTarget()).
  std::string target;
  /// What compiled their kernels; empty: not known.
  std::string compiler;
  /// What the rows of kind "cuda" were measured on; empty: not known.
  std::string cudaTarget = {};
  std::vector<PlanRow> plans = {};
  /// Of host kernels.
  std::vector<ProgramChoice> choices = {};
  /// Of the host that `target` names; nullopt: not measured.
  std::optional<HostPeaks> peaks = {};
  /// The same, one for each number of processors.
  std::vector<HostTimes> hosts = {};

  /// True when both measured the same code on the same machine.
  bool isComparable(const Profile &other) const {
    return target == other.target && compiler == other.compiler;
  }

  /// The fastest row of a kernel on a kind, as measured alone; null when there
  /// is none.
  const ProfileRow *fastest(llvm::StringRef hash, llvm::StringRef kind) const;
  /// The row of one implementation; null when there is none.
  const ProfileRow *find(llvm::StringRef hash, llvm::StringRef kind,
                         llvm::StringRef implementation) const;
  /// Of a program's hash; null where it did not run.
  const PlanRow *findPlan(llvm::StringRef program) const;
  /// The same; null where none was made.
  const ProgramChoice *findChoice(llvm::StringRef program) const;
  /// Adds a choice, unless the program has one that is not \p replaced.
  void settleChoice(const ProgramChoice &choice,
                    const ProgramChoice *replaced = nullptr);
  /// With so many processors; null where that was not measured.
  const HostTimes *findHost(int64_t cores) const;
  /// Replaces what was known with as many processors.
  void setHost(const HostTimes &times);
};

llvm::Expected<Profile> readProfile(const std::string &path);
/// The same from a text; \p name stands for the file in errors.
llvm::Expected<Profile> parseProfile(llvm::StringRef text,
                                     const std::string &name);
/// What its file holds.
llvm::json::Object profileObject(const Profile &profile);
llvm::Error writeProfile(const std::string &path, const Profile &profile);
/// Adds the rows, times within a step, plans and times of hosts that the file
/// \p path lacks, if it is there, and rows that it has disturbed; times of
/// hosts are replaced, choices never. Several processes may do so at once: no
/// row is lost, but the oldest above kMostProfileRows, of those that no choice
/// names. Rows of host kernels that the file has of another target or
/// compiler move to a file of their own beside it, whose name ends in a hash of
/// both.
llvm::Error addToProfile(const std::string &path, const Profile &profile);

/// The same, with a choice for a program: the one that the file has of it
/// stays, unless it is what \p replaced says. Gives the one that the file has
/// now, and
/// \p profile the rows of its code. Of processes that do so at once one comes
/// first, and all get its choice.
llvm::Expected<ProgramChoice> keepChoice(const std::string &path,
                                         Profile &profile,
                                         const ProgramChoice &choice,
                                         const ProgramChoice *replaced);

} // namespace baechi

#endif // BAECHI_COSTS_PROFILE_H

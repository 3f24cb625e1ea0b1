//===- StaleRun.h - Replicas with a late state are run ----------*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef BAECHI_DRIVER_STALERUN_H
#define BAECHI_DRIVER_STALERUN_H

#include "Baechi/Driver/Compilation.h"
#include "Baechi/Replicas/SharedState.h"

namespace baechi {

/// What --staleness and its like ask for.
struct StaleOptions {
  int replicas = 1;
  int staleness = 0;
  std::optional<double> bandwidth; ///< bytes per second
};

struct StaleReport {
  StaleOptions asked;
  std::string model, machine;
  int64_t steps = 0, wallNs = 0;
  /// Arguments that replicas share, and the bytes of these.
  int64_t sharedArrays = 0, sharedBytes = 0;
  std::string lossName;
  /// By replica, a step each; none where the step has no scalar f32 result.
  std::vector<std::vector<float>> losses;
  store::StoreReport store;

  void print(llvm::raw_ostream &os) const;
  llvm::json::Object toJson() const;
};

/// Replicas that each compute the model's step, as it is, with devices of their
/// own and at their own pace: its state, the arguments that it computes the
/// next values of, is in a parameter store, and each sees it as late as was
/// asked for by name (docs/replicas.md).
class StaleRun {
public:
  StaleRun(Compilation &compilation, StaleOptions asked, StepOptions options,
           Listener &listener)
      : compilation(compilation), asked(asked), options(std::move(options)),
        listener(listener) {}

  llvm::Error run();
  /// After run(): the state, and of other results what each replica's last step
  /// made of them, along a new first dimension; as outN.
  llvm::Error writeOutputs(const std::string &path) const;
  StaleReport report() const;

private:
  /// An argument that the step computes the next value of.
  struct StateArgument {
    size_t argument = 0, result = 0;
    std::optional<size_t> shared; ///< none: each replica has its own
  };

  llvm::Error start();
  llvm::Error findState(const std::vector<Array> &first);
  llvm::Error work(int replica);
  llvm::Error step(int replica, bool counted);
  /// Fails where replicas' own values, which have to be the same, are not.
  llvm::Error checkOwn() const;
  llvm::Expected<Array> shared(const StateArgument &argument) const;
  const runtime::Program &program() const {
    return replicas.front()->program();
  }

  Compilation &compilation;
  StaleOptions asked;
  StepOptions options;
  Listener &listener;
  std::vector<std::unique_ptr<Execution>> replicas;
  std::vector<StateArgument> state;
  std::unique_ptr<replicas::SharedState> store;
  std::optional<size_t> loss;
  StaleReport found;
};

/// What is wrong with \p stale beside the other options; none: it is not asked
/// for.
llvm::Error checkStale(const std::optional<StaleOptions> &stale,
                       const DriverOptions &driver, const StepOptions &steps,
                       const OutputOptions &files);

} // namespace baechi

#endif // BAECHI_DRIVER_STALERUN_H

//===- StaleRun.h - Replicas with a late state are run ----------*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef BAECHI_DRIVER_STALE_STALERUN_H
#define BAECHI_DRIVER_STALE_STALERUN_H

#include "Baechi/Driver/Compilation/Compilation.h"
#include "Baechi/Driver/Stale/StaleReplica.h"
#include "Baechi/Replicas/SharedState.h"
#include "Baechi/Runtime/RankLines.h"

namespace baechi {

class FirstValues;

struct StaleReport {
  StaleOptions asked;
  std::string model, machine;
  int64_t steps = 0, wallNs = 0;
  /// Which replicas which process has; empty: there is one process.
  std::string ranks;
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
/// asked for by name (docs/replicas.md). Of several processes, the ranks, each
/// has some of the replicas, and the first one compiles, has the store and
/// reports.
class StaleRun {
public:
  StaleRun(Compilation &compilation, StaleOptions asked, StepOptions options,
           Listener &listener, std::shared_ptr<runtime::Ranks> ranks = nullptr)
      : compilation(compilation), asked(asked), options(std::move(options)),
        listener(listener), ranks(std::move(ranks)) {}

  llvm::Error run();
  /// After run(): the state, and of other results what each replica's last step
  /// made of them, along a new first dimension; as outN.
  llvm::Error writeOutputs(const std::string &path) const;
  StaleReport report() const;

private:
  bool isHere(int replica) const { return rankOf(replica) == 0; }
  int32_t rankOf(int replica) const;
  llvm::Error start();
  llvm::Error startStore(FirstValues &values);
  /// Gives the other ranks the program, and their replicas first values.
  llvm::Error sendStart(FirstValues &values);
  llvm::Error work(int replica);
  /// Answers a replica of another rank until it has ended.
  llvm::Error serve(int replica);
  llvm::Expected<std::string> hear(int replica);
  /// Fails where replicas' own values, which have to be the same, are not.
  llvm::Error checkOwn() const;
  llvm::Expected<Array> valueOf(const StaleProgram::StateArgument &each) const;
  const runtime::Program &program() const {
    return replicas.front()->program().program();
  }

  Compilation &compilation;
  StaleOptions asked;
  StepOptions options;
  Listener &listener;
  std::shared_ptr<runtime::Ranks> ranks;
  StaleProgram stale;
  /// Those of this process, from the first on.
  std::vector<std::unique_ptr<StaleReplica>> replicas;
  std::unique_ptr<replicas::SharedState> store;
  std::unique_ptr<runtime::RankLines> lines;
  std::atomic<bool> failed{false};
  std::vector<StaleEnd> ends; ///< a replica each
  StaleReport found;
};

/// Another rank than 0: computes its replicas of the program that rank 0 sends,
/// until that dismisses it. A DiagnosedError where rank 0 says what is wrong.
llvm::Error serveStaleRank(const std::shared_ptr<runtime::Ranks> &ranks,
                           const StaleOptions &asked, int64_t steps,
                           double watchdogSeconds, int killed);

/// What is wrong with \p stale beside the other options; none: it is not asked
/// for.
llvm::Error checkStale(const std::optional<StaleOptions> &stale,
                       const DriverOptions &driver, const StepOptions &steps,
                       const OutputOptions &files);

} // namespace baechi

#endif // BAECHI_DRIVER_STALE_STALERUN_H

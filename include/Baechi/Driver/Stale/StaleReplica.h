//===- StaleReplica.h - One replica with a late state -----------*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef BAECHI_DRIVER_STALE_STALEREPLICA_H
#define BAECHI_DRIVER_STALE_STALEREPLICA_H

#include "Baechi/Driver/Execution/Execution.h"
#include "Baechi/Replicas/ReplicaState.h"
#include "Baechi/Runtime/ParameterStore.h"
#include <functional>
#include <optional>

namespace baechi {

/// What --staleness and its like ask for.
struct StaleOptions {
  int replicas = 1;
  int staleness = 0;
  std::optional<double> bandwidth; ///< bytes per second
  /// Which rows go first of what a bandwidth does not let through at once.
  std::optional<store::SendOrder> order;
  /// What a step changes is a gradient's share, of which the store makes steps
  /// of this size that know how late they are.
  std::optional<double> revised;
  /// Results are wanted besides the state.
  bool results = false;
};

/// By the names that Python has for them; none: no order has this one.
std::optional<store::SendOrder> orderOf(llvm::StringRef name);
llvm::StringRef nameOf(store::SendOrder order);

store::StoreOptions storeOptionsOf(const StaleOptions &asked,
                                   double watchdogSeconds);

/// What replicas share of a step, and what each has of its own. The same in all
/// processes.
struct StaleProgram {
  /// An argument that the step computes the next value of.
  struct StateArgument {
    size_t argument = 0, result = 0;
    std::optional<size_t> shared; ///< none: each replica has its own
  };

  static llvm::Expected<StaleProgram> of(const runtime::Program &program,
                                         const StaleOptions &asked);

  std::vector<StateArgument> state;
  std::vector<replicas::SharedArray> arrays;
  std::vector<size_t> results; ///< those that are no state's next value
  std::optional<size_t> loss;
};

/// What a replica leaves.
struct StaleEnd {
  std::vector<float> losses; ///< a step each
  std::vector<Array> own;    ///< of the state that is not shared
  std::vector<Array> results;

  /// Between processes: the bytes alone, as both know the program.
  std::string text() const;
  bool read(llvm::StringRef text, const runtime::Program &program,
            const StaleProgram &stale, const StaleOptions &asked,
            int64_t steps);
};

/// A program with devices of its own, whose state is seen late.
class StaleReplica {
public:
  StaleReplica(int number, std::unique_ptr<Execution> execution)
      : number(number), execution(std::move(execution)) {}

  /// What is wrong with what a step computed, before it is of the state.
  using Check = std::function<llvm::Error(const Execution &)>;

  llvm::Error work(const StaleProgram &stale, replicas::ReplicaState &state,
                   int64_t steps, const Check &check);
  llvm::Expected<StaleEnd> end(const StaleProgram &stale,
                               bool withResults) const;

  Execution &program() { return *execution; }
  const Execution &program() const { return *execution; }
  int replica() const { return number; }

private:
  llvm::Error step(const StaleProgram &stale, replicas::ReplicaState &state,
                   bool counted, const Check &check);

  int number;
  std::unique_ptr<Execution> execution;
  std::vector<float> losses;
};

/// The shared array as the store has it, and as a program does.
std::vector<float> toFloats(const Array &array);
Array fromFloats(const runtime::BufferInfo &info,
                 const std::vector<float> &values);

} // namespace baechi

#endif // BAECHI_DRIVER_STALE_STALEREPLICA_H

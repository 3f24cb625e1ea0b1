//===- ParameterStore.h - Shared values with bounded staleness --*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Tables of rows that threads of one process read, and change by adding, while
/// each computes at its own pace. A worker tells its clock when a piece of its
/// work is done, and a read at clock c sees
///
///  - every update of every worker from clocks up to c - staleness - 1,
///  - all updates of the worker's own process,
///  - of the others', whichever came already.
///
/// It waits where those are not there yet. Between clocks nothing is sent,
/// unless there is a budget: then what matters most goes first, and the budget
/// is used fully. With a staleness of 0 and no budget this is bulk synchronous
/// computing: of workers that read in each clock, nothing newer is seen either.
///
/// Workers belong to "processes", here groups of threads that share a cache. A
/// carrier thread for each moves its updates to the server, and the others' to
/// it, each way with the budget's bytes per second. A row that is read for the
/// first time comes at once, beside the budget.
///
/// Source: Bösen (UpdateLog.h); Ho et al., "More Effective Distributed ML via a
/// Stale Synchronous Parallel Parameter Server", NIPS 2013.
///
//===----------------------------------------------------------------------===//
#ifndef BAECHI_RUNTIME_PARAMETERSTORE_H
#define BAECHI_RUNTIME_PARAMETERSTORE_H

#include "Baechi/Runtime/SentRows.h"
#include "Baechi/Runtime/UpdateLog.h"

#include <limits>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>

namespace baechi::store {

/// What the server does with an update.
enum class UpdateRule : uint8_t {
  Add,
  /// Updates are gradients, and steps know how late they are (Revision.cpp): a
  /// worker sees what its own did when the server has made a step of them.
  AdaptiveRevision,
};

struct TableShape {
  std::string name;
  size_t rows = 0, width = 0;
  UpdateRule rule = UpdateRule::Add;
  double step = 0; ///< of adaptive revision
};

/// What others do when a worker was reported lost.
enum class WhenLost : uint8_t {
  Stop, ///< every call fails and names it
  Wait, ///< the bound keeps them waiting for it to go on, for `patience`
};

/// Cables between processes and the server in simulated time, each way one.
struct SimulatedNetwork {
  double bytesPerSecond = 0;
  int64_t latencyNs = 50000;
};

struct StoreOptions {
  int workers = 1;
  /// Worker w is of process w mod processes; 0: each has one of its own.
  int processes = 0;
  int staleness = 0;
  /// Bytes per second, each way, of each process; none: updates are sent at
  /// clocks alone, at once. Infinity: at once always.
  std::optional<double> budget;
  SendOrder order = SendOrder::RelativeMagnitude;
  /// Of one round of a carrier that has a budget.
  size_t roundBytes = 100 << 10;
  /// At its clock c a process must send what is from before clock
  /// c - staleness + tolerance (at most c).
  int tolerance = 2;
  /// Seconds that a call waits for others before it fails, and names the
  /// slowest; infinity: without end.
  double patience = 10;
  WhenLost whenLost = WhenLost::Stop;
  /// Counts the updates within every row that is read and fails where one
  /// misses that the bound promises. For tests: each row grows by a number a
  /// worker, and every update is remembered.
#ifdef NDEBUG
  bool checked = false;
#else
  bool checked = true;
#endif
  uint64_t seed = 1;
  /// Time is simulated: no thread carries and no call waits; `next` says which
  /// worker goes on (ParameterStore::next).
  std::optional<SimulatedNetwork> simulated;
};

/// A wrong use, a worker that was lost or is late, or a number that is none.
struct StoreError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

struct StoreReport {
  /// By process.
  std::vector<uint64_t> bytesSent, bytesReceived, rowsSent, rowsReceived;
  /// Those received for rows that were read for the first time.
  std::vector<uint64_t> bytesFetched;
  /// By worker.
  std::vector<int64_t> clocks;
  std::vector<double> secondsWaited;
  /// Reads by how many clocks their values were behind the reader's; the last
  /// element has those at the bound.
  std::vector<uint64_t> readsByStaleness;
};

class ParameterStore {
public:
  ParameterStore(std::vector<TableShape> tables, StoreOptions options);
  ~ParameterStore();

  const std::vector<TableShape> &tables() const;
  const StoreOptions &options() const;

  /// A row's value, before any worker reads or changes it.
  void set(size_t table, size_t row, const float *value);
  /// The server's value of a row; after `drain`, the sum of all updates.
  void read(size_t table, size_t row, float *value) const;

  /// Copies a row as \p worker sees it.
  void get(int worker, size_t table, size_t row, float *value);
  /// Adds to a row, or gives its gradient.
  void inc(int worker, size_t table, size_t row, const float *update);
  /// Ends the worker's clock and begins the next, which is returned.
  int64_t clock(int worker);
  /// The worker is done: nobody waits for it any more.
  void finish(int worker);
  /// The worker is lost. Its clock stays as it is.
  void lose(int worker, const std::string &why);

  /// Brings every update everywhere, without a budget. No worker may be within
  /// a call.
  void drain();
  /// Values and clocks, to a file that is there as a whole or not at all. No
  /// worker may be within a call.
  void save(const std::string &file);
  /// A store that goes on from a file: with as many workers each at its
  /// clock, with another number all at the earliest; 0 workers are as many.
  static std::unique_ptr<ParameterStore> restore(const std::string &file,
                                                 StoreOptions options);

  StoreReport report() const;

  /// The worker's cache is in another process from now on (ProcessCache.h), as
  /// long as it is of no other worker, too; else false. Its budget is kept
  /// there. \p fresh: all updates from before are at the server.
  bool moveElsewhere(int worker, int64_t &clock, int64_t &fresh);
  /// It is here again, and empty: that process is done, or lost.
  void moveBack(int worker);
  /// Numbers of a row that are sent.
  size_t numbersOf(size_t table) const;
  /// For that cache: a row that it has not yet, with all that is sent of it.
  void fetch(int worker, size_t table, size_t row, float *numbers);
  /// What the worker sends: with \p rows all of its updates from before clock
  /// \p sent; it is at \p clock.
  void receive(int worker, const SentRows &rows, int64_t sent, int64_t clock);
  /// What others changed of its rows, of at most \p bytes, after which it has
  /// all from before \p through.
  SentRows send(int worker, size_t bytes, int64_t &through);
  /// Waits until all updates from before \p clock may be sent to it, for at
  /// most \p limit seconds, after it has \p waited already: whether they may.
  bool await(int worker, int64_t clock, double limit, double waited);
  /// Of a store that is checked: fails where what a row of its cache \p counts
  /// lacks what the bound promises at \p clock.
  void checkRead(int worker, size_t table, size_t row, int64_t clock,
                 const float *counts);
  /// How late its reads have been so far, as of `StoreReport`.
  void countReads(int worker, const std::vector<uint64_t> &byStaleness);

  /// Of simulated time: the worker that goes on next, because what it computes
  /// is done and the bound lets it read; none when all are finished. It may
  /// read, add and tell its clock, and then computes or finishes.
  std::optional<int> next();
  /// The worker goes on so much later, and after rows that it read first came.
  void compute(int worker, double seconds);
  double simulatedSeconds() const;

  struct State;

private:
  std::unique_ptr<State> state;
};

} // namespace baechi::store

#endif // BAECHI_RUNTIME_PARAMETERSTORE_H

//===- StoreState.h - What a parameter store consists of --------*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef BAECHI_RUNTIME_STORE_STORESTATE_H
#define BAECHI_RUNTIME_STORE_STORESTATE_H

#include "Baechi/Runtime/ParameterStore.h"
#include "store/Pace.h"
#include "store/ReadChecker.h"

#include <array>
#include <atomic>
#include <condition_variable>
#include <map>
#include <mutex>
#include <thread>

namespace baechi::store {

/// Rows are dealt to stripes, row r to stripe r mod stripes, each with a lock.
inline constexpr size_t stripes = 64;

/// A stripe of a table at a process: what its workers read.
struct CacheStripe {
  CacheStripe(size_t rows, size_t width, size_t weighed)
      : values(rows, width, weighed), log(rows, width), cached(rows, 0) {}
  std::mutex mutex;
  RowValues values;
  UpdateLog log; ///< own updates, for the server
  std::vector<uint8_t> cached;
};

/// A stripe of a table at the server.
struct ServerStripe {
  ServerStripe(size_t rows, size_t width, size_t weighed, int processes)
      : values(rows, width, weighed), logs(processes, UpdateLog(rows, width)),
        readers(processes, std::vector<uint8_t>(rows, 0)) {}
  std::mutex mutex;
  RowValues values;
  std::vector<UpdateLog> logs; ///< by process: the others' updates, for it
  std::vector<std::vector<uint8_t>> readers; ///< by process: does it cache it?
};

/// One direction of a process's link to the server.
struct Direction {
  explicit Direction(std::optional<double> budget) : pace(budget) {}
  Pace pace;
  std::atomic<uint64_t> bytes{0}, rows{0};
};

struct Process {
  explicit Process(std::optional<double> budget) : up(budget), down(budget) {}
  /// [table][stripe]
  std::vector<std::vector<std::unique_ptr<CacheStripe>>> tables;
  std::atomic<int64_t> clock{0};   ///< of its slowest worker
  std::atomic<int64_t> flushed{0}; ///< updates from before are at the server
  std::atomic<int64_t> fresh{0};   ///< updates from before are in the cache
  Direction up, down;
  std::mutex carrying; ///< held during a round
  std::mutex mutex;    ///< of `woken`
  std::condition_variable wake;
  bool woken = false;
  std::thread carrier;
};

/// What a round moved, and whether all is through that a clock needs.
struct Carried {
  size_t bytes = 0;
  bool through = false;
};

struct Worker {
  std::atomic<int64_t> clock{0};
  std::atomic<bool> finished{false};
  std::atomic<Time::time_point> ticked{Time::now()};
  std::atomic<double> waited{0};
  std::vector<uint64_t> staleness; ///< its own thread's
};

struct ParameterStore::State {
  State(std::vector<TableShape> tables, StoreOptions options);
  ~State();

  std::vector<TableShape> shapes;
  StoreOptions options;
  std::vector<size_t> widths; ///< of rows, with what the checker adds
  std::vector<std::vector<std::unique_ptr<ServerStripe>>> server;
  std::vector<std::unique_ptr<Process>> processes;
  std::vector<std::unique_ptr<Worker>> workers;
  std::unique_ptr<ReadChecker> checker;
  size_t widest = 0;
  size_t limit; ///< bytes of a carrier's round

  std::atomic<int64_t> serverClock{0};
  std::atomic<bool> stopping{false};
  std::atomic<bool> lost{false};
  std::mutex mutex; ///< of `losses`, and to wait for `progress`
  std::map<int, std::string> losses;
  std::condition_variable progress;

  Process &processOf(int worker) {
    return *processes[size_t(worker) % processes.size()];
  }
  void checkRow(size_t table, size_t row) const;
  void checkWorker(int worker) const;
  /// Fails where a worker was lost and that stops the others.
  void checkLosses();
  std::string lossesText();
  void setClock(int worker, int64_t clock, bool finished);
  void wait(int worker, int64_t clock);
  /// Puts a row into the cache, whose stripe is locked.
  void fetch(size_t process, size_t table, size_t row);

  /// Nothing is sent before all workers are there: a read sees what was before
  /// its clock and no more.
  bool isBulkSynchronous() const {
    return !options.budget && options.staleness == 0;
  }

  // Carriers.
  void start();
  void carry(size_t process);
  void wakeAll();
  void wakeUp(Process &process);
  /// Before which clock a process must have sent its updates.
  int64_t mustSend(int64_t clock) const;
  /// A round of at most \p limit bytes, rows from before clock \p must first.
  Carried push(size_t process, int64_t must, size_t limit, SplitMix &random);
  Carried pull(size_t process, int64_t must, size_t limit, SplitMix &random);
  /// A round when the budget allows one; returns its bytes.
  size_t carryUp(size_t process, SplitMix &random);
  size_t carryDown(size_t process, SplitMix &random);
  void updateServerClock();
  void drain();
};

} // namespace baechi::store

#endif // BAECHI_RUNTIME_STORE_STORESTATE_H

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
#include "store/CachedRows.h"
#include "store/Pace.h"
#include "store/ReadChecker.h"
#include "store/StoreSimulation.h"

#include <array>
#include <atomic>
#include <condition_variable>
#include <map>
#include <mutex>
#include <thread>

namespace baechi::store {

/// Rows are dealt to stripes, row r to stripe r mod stripes, each with a lock.
inline constexpr size_t stripes = 64;

/// A stripe of a table at the server.
struct ServerStripe {
  ServerStripe(size_t rows, size_t width, size_t weighed, int processes,
               std::atomic<uint64_t> &ages)
      : values(rows, width, weighed),
        logs(processes, UpdateLog(rows, width, ages)),
        readers(processes, std::vector<uint8_t>(rows, 0)) {}
  std::mutex mutex;
  RowValues values;
  std::vector<UpdateLog> logs; ///< by process: the others' updates, for it
  std::vector<std::vector<uint8_t>> readers; ///< by process: does it cache it?
  std::vector<float> revised; ///< a row each, of adaptive revision
  std::vector<float> change;  ///< that a row's gradients made
};

/// One direction of a process's link to the server.
struct Direction {
  Direction(std::optional<double> budget, Time::time_point begin, uint64_t seed)
      : pace(budget, begin), turn(seed) {}
  Pace pace;
  Turn turn;
  bool idle = false;   ///< the last round found nothing
  int64_t through = 0; ///< updates from before are sent
  std::atomic<uint64_t> bytes{0}, rows{0};
  void count(const Round &round) {
    bytes += round.bytes();
    rows += round.rows.size();
  }
};

struct Process {
  Process(std::optional<double> budget, Time::time_point begin, uint64_t seed)
      : up(budget, begin, seed), down(budget, begin, seed + 1) {}
  /// [table][stripe]
  std::vector<std::vector<std::unique_ptr<CacheStripe>>> tables;
  std::atomic<int64_t> clock{0};   ///< of its slowest worker
  std::atomic<int64_t> flushed{0}; ///< updates from before are at the server
  std::atomic<int64_t> fresh{0};   ///< updates from before are in the cache
  /// Its cache is in another process (ProcessCache.h): what is here has its
  /// updates on their way to the server, and `fresh` is what may be sent.
  std::atomic<bool> isElsewhere{false};
  std::atomic<int64_t> sent{0}; ///< updates from before have come from there
  Direction up, down;
  std::atomic<uint64_t> fetched{0}; ///< bytes of rows that were read first
  std::atomic<uint64_t> ages{0};
  std::mutex carrying; ///< held during a round
  std::mutex mutex;    ///< of `woken`
  std::condition_variable wake;
  bool woken = false;
  std::thread carrier;
};

struct Worker {
  std::atomic<int64_t> clock{0};
  std::atomic<bool> finished{false};
  std::atomic<Time::time_point> ticked;
  std::atomic<double> waited{0};
  std::vector<uint64_t> staleness; ///< its own thread's
};

struct ParameterStore::State {
  State(std::vector<TableShape> tables, StoreOptions options);
  ~State();

  std::vector<TableShape> shapes;
  StoreOptions options;
  /// Of rows, with what adaptive revision and then the checker add.
  std::vector<size_t> widths;
  std::vector<std::vector<std::unique_ptr<ServerStripe>>> server;
  std::vector<std::unique_ptr<Process>> processes;
  std::vector<std::unique_ptr<Worker>> workers;
  std::unique_ptr<ReadChecker> checker;
  size_t widest = 0;
  size_t limit; ///< bytes of a carrier's round
  std::atomic<uint64_t> serverAges{0};
  std::unique_ptr<Simulation> simulation; ///< if time is simulated

  std::atomic<int64_t> serverClock{0};
  std::atomic<bool> stopping{false};
  std::atomic<bool> lost{false};
  std::mutex mutex; ///< of `losses`, and to wait for `progress`
  std::map<int, std::string> losses;
  std::condition_variable progress;

  Process &processOf(int worker) {
    return *processes[size_t(worker) % processes.size()];
  }
  bool revises(size_t table) const {
    return shapes[table].rule == UpdateRule::AdaptiveRevision;
  }
  void checkRow(size_t table, size_t row) const {
    store::checkRow(shapes, table, row);
  }
  void checkWorker(int worker) const;
  /// Fails where a worker was lost and that stops the others.
  void checkLosses();
  std::string lossesText();
  void setClock(int worker, int64_t clock, bool finished);
  /// Waits until a worker may read what is as new as \p clock, at most for
  /// \p limit seconds after it has \p waited already.
  bool wait(int worker, int64_t clock,
            double limit = std::numeric_limits<double>::infinity(),
            double waited = 0);
  [[noreturn]] void refuseToWait(int worker, double waited);
  Time::time_point now() const {
    return simulation ? simulation->now : Time::now();
  }
  /// Puts a row into the cache, whose stripe is locked.
  void fetch(size_t process, size_t table, size_t row);
  void fetchFor(int worker, size_t table, size_t row);

  /// Nothing is sent before all workers are there: a read sees what was before
  /// its clock and no more.
  bool isBulkSynchronous() const {
    return !options.budget && options.staleness == 0;
  }

  /// What a file has of a row.
  std::vector<float> wholeRow(size_t table, size_t row);
  void setWholeRow(size_t table, size_t row, const float *whole);

  // Carriers.
  void start();
  void carry(size_t process);
  void wakeAll();
  void wakeUp(size_t process);
  /// Rounds of at most \p most bytes, rows from before clock \p must first.
  Round chooseUp(size_t process, int64_t must, size_t most);
  Round chooseDown(size_t process, int64_t must, size_t most);
  /// Moves a round's rows at once.
  void moveUp(size_t process, const Round &round);
  void moveDown(size_t process, const Round &round);
  /// Adds what a process sent to the server's row, whose stripe is locked.
  void addAtServer(size_t process, const Candidate &row, int64_t clock,
                   const float *sum);
  /// The change of a row by gradients, which is returned.
  const float *revise(ServerStripe &stripe, size_t table, size_t at,
                      const float *gradients);
  void addAtCache(size_t process, const Candidate &row, const float *sum);
  /// All that a process did before a clock is at the server, or all that
  /// everybody did is in its cache.
  void reachedServer(size_t process, int64_t through);
  void reachedCache(size_t process, int64_t through);
  /// A round when the budget allows one; returns its bytes.
  size_t carryUp(size_t process);
  size_t carryDown(size_t process);
  /// The server sends a process no row that it does not read again.
  void forgetReads(size_t process);
  /// Fails where a worker's cache is elsewhere.
  void checkHere(int worker);
  /// The process of a worker whose cache is elsewhere; fails where it is not.
  size_t elsewhere(int worker);
  /// Of a process elsewhere: what has come from there.
  void carryFrom(size_t process);
  size_t finishRound(size_t process, bool up, int64_t must, Round round);
  void updateServerClock();
  void drain();

  // Simulated time.
  /// Takes a round's rows with it.
  void depart(size_t process, bool up, int64_t through, Round round);
  void arrive(Flight &flight);
  /// Whoever has its turn, where time is simulated.
  void endTurn(int worker) {
    if (simulation && simulation->turn == worker)
      simulation->turn.reset();
  }
  bool mayRead(int worker) const;
  void carryAt(size_t process, Time::time_point time);
  void carryNow(size_t process);
  std::optional<int> nextWorker();
  /// Adds what \p process has on its way to the server to a row.
  void addFlights(size_t process, size_t table, size_t row, RowValues &values);
};

} // namespace baechi::store

#endif // BAECHI_RUNTIME_STORE_STORESTATE_H

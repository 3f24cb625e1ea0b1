//===- Pulse.h - Whether other ranks live -----------------------*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Whether other ranks live, whatever they do. A thread of each rank says so
/// every quarter of a second, over a connection of its own between rank 0 and
/// each other, and nothing else of the process keeps it from that: who
/// compiles, computes or waits for a line of input goes on saying it. A process
/// that is stopped, or a machine that cannot be reached, says nothing, and is
/// lost when that lasts too long. How far a rank has come is for the watchdog
/// of a step.
///
/// A process that a signal ends says which, if it can. Rank 0 tells the others
/// who was lost, and why.
///
//===----------------------------------------------------------------------===//
#ifndef BAECHI_RUNTIME_RANKS_PULSE_H
#define BAECHI_RUNTIME_RANKS_PULSE_H

#include "core/Attention.h"

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <thread>
#include <vector>

namespace baechi::runtime {

class Pulse {
public:
  /// Of a rank. Another one that has said nothing for so many seconds is lost;
  /// 0: never.
  Pulse(int32_t self, int32_t ranks, double silence);
  /// Falls silent, as a process that ends.
  ~Pulse();

  /// From now on another rank is listened to. The connection is this one's.
  void add(int32_t rank, int socket);
  void setSilence(double seconds) { silence = seconds; }
  /// A rank has said nothing for so long, as others see.
  void giveUp(int32_t rank) { lose(rank, Silent); }

  /// The first that was lost, -1: none.
  const std::atomic<int32_t> &lostRank() const { return lost; }
  /// Who was lost first, where the end of rank \p seen was seen: it may have
  /// ended for the loss of rank 0, which is about to be seen here, too.
  int32_t firstLost(int32_t seen) const;
  /// Of a rank that was lost; waits a moment for what it, or rank 0, says.
  std::string whyLost(int32_t rank) const;
  /// Of one that has said nothing for so long.
  static std::string describeSilence(double seconds);

  /// The process goes on, and ends in order.
  void leave();
  /// It is ended by a signal. For signal handlers.
  void sayEnding(int32_t signal) const;

private:
  /// Why a rank was lost: these, or the signal that has ended it.
  enum Cause : int32_t { Unknown = -3, GaveUp = -2, Silent = -1, Ended = 0 };
  struct Word {
    enum Kind : char { Beat = 'b', Leaves = 'g', Ends = 'e', Lost = 'l' };
    Kind kind;
    int32_t rank, cause;
  };
  /// Beats have a byte, so that none is ever sent in part.
  static constexpr size_t wordBytes = 9;

  struct Peer {
    std::atomic<int> socket{-1};
    Attention silent{2 * beatEvery};
    std::atomic<bool> isQuiet{false}; ///< for longer than it should be
    char heard[wordBytes];
    size_t bytes = 0;
  };

  void run();
  void beat();
  void listen(int32_t rank);
  /// False where there is nothing more to hear.
  bool heed(int32_t rank);
  void lose(int32_t rank, int32_t cause);
  void say(int32_t rank, const Word &word) const;
  void hangUp(int32_t rank);

  /// How often a rank says that it lives, and looks whether the others do.
  static constexpr std::chrono::milliseconds beatEvery{250};

  const int32_t self, ranks;
  std::atomic<double> silence;
  std::unique_ptr<Peer[]> peers;
  std::unique_ptr<std::atomic<int32_t>[]> causes;
  std::atomic<int32_t> lost{-1};
  std::atomic<bool> left{false}, ending{false};
  const int bell;
  std::thread thread;
};

} // namespace baechi::runtime

#endif // BAECHI_RUNTIME_RANKS_PULSE_H

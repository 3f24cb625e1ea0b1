//===- Ranks.h - Processes that run one program -*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// The processes of one start, by `mpirun` or what else (Launch.h): its ranks.
/// Rank 0 leads: it plans and compiles, creates the session, sets arguments,
/// steps and reads results as if it were alone. The others hold the devices
/// that are theirs and follow its calls (Session::follow).
///
//===----------------------------------------------------------------------===//
#ifndef BAECHI_RUNTIME_RANKS_H
#define BAECHI_RUNTIME_RANKS_H

#include "Baechi/Runtime/Error.h"

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace baechi::runtime {

class Pulse;
class Transport;
struct Launch;

class Ranks {
public:
  explicit Ranks(std::unique_ptr<Transport> transport);
  ~Ranks();

  /// Joins the others of a start that is not `Alone`. MPI is in a module:
  /// BAECHI_MPI_LIBRARY, or `module`.
  static Expected<std::shared_ptr<Ranks>> join(const Launch &launch,
                                               const std::string &module);

  int32_t rank() const;
  int32_t size() const;
  bool leads() const { return rank() == 0; }
  /// Whether that rank's process is on this one's computer.
  bool isNear(int32_t rank) const;
  /// "rank 1".
  static std::string name(int32_t rank);

  /// The rank that holds device `device` of `devices`: blocks of neighbours.
  int32_t ownerOf(size_t device, size_t devices) const;

  /// Between steps: sends bytes to a rank, and waits for those that it sends.
  /// Fails when a rank is lost.
  Error send(int32_t to, std::string_view bytes);
  Expected<std::string> receive(int32_t from);
  /// The same into a text that is there already.
  Error receive(int32_t from, std::string &bytes);

  /// By all ranks: what each of them says, in their order.
  Expected<std::vector<std::string>> gather(const std::string &mine);

  /// By all ranks, before a session: nothing of an earlier one is left.
  Error renew();

  /// By all ranks: the first error of all, which names its rank, or none. It is
  /// the same on all ranks. `same`: what has to be equal on all of them,
  /// lines "name: value"; the error names the first that is not.
  Error agree(const Error &error, const std::string &same);

  /// A rank that says nothing for so long is given up, in a step and between
  /// steps, and one that takes nothing of what it is sent between steps for six
  /// times as long. 0: never.
  void setSilence(double seconds);
  double silence() const { return silenceSeconds; }

  /// Rank 0 lets the others end. Not after a rank was lost.
  void dismiss();
  /// Whether rank 0 has.
  bool dismissed() const { return mayEnd; }
  void setDismissed() { mayEnd = true; }
  /// By all ranks, when their sessions are gone: ends the transport. Not after
  /// a rank was lost.
  void close();

  /// A rank is lost: nothing more can be done together.
  bool broken() const { return lost.load() >= 0; }
  void setLost(int32_t rank) { lost.store(rank); }
  int32_t lostRank() const { return lost.load(); }
  /// "rank 1 was lost: ..."
  std::string describeLost(int32_t rank) const;
  /// Who was lost first, where \p seen was seen to be; -1: nobody was.
  int32_t firstLost(int32_t seen) const;
  /// The rank whose process has ended, or that was given up, or -1. For signal
  /// handlers too.
  int32_t findLost() const;
  /// This process is being ended by a signal: tells the others. For its
  /// handler.
  void sayEnding(int32_t signal) const;

  /// What knows whether the others live.
  void setPulse(std::unique_ptr<Pulse> given);

  /// The runtime's own.
  Transport &transport() { return *link; }

private:
  Error wait(struct Ticket &ticket, struct Problem begun, int32_t peer,
             bool sends);

  std::unique_ptr<Pulse> pulse; ///< which `link` looks at
  std::unique_ptr<Transport> link;
  double silenceSeconds = 10;
  std::atomic<int32_t> lost{-1};
  bool mayEnd = false, closed = false;
};

} // namespace baechi::runtime

#endif // BAECHI_RUNTIME_RANKS_H

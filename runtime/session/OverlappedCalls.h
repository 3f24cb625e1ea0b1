//===- OverlappedCalls.h - Calls without a barrier --------------*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef BAECHI_RUNTIME_SESSION_OVERLAPPEDCALLS_H
#define BAECHI_RUNTIME_SESSION_OVERLAPPEDCALLS_H

#include "session/SessionState.h"

#include <atomic>
#include <map>
#include <mutex>

namespace baechi::runtime {

/// Calls that overlap while they come: what OverlappedSteps.cpp does with steps
/// whose number is known.
class OverlappedCalls {
public:
  /// \p parties: devices here, and other processes, that end each call.
  OverlappedCalls(int64_t first, CallSource &source, int32_t parties)
      : first(first), source(source), parties(parties) {}

  /// A device's parts of all calls, on its thread. It leaves when what its last
  /// one carries has arrived.
  void run(SessionState &state, size_t device);
  /// A device here, or another process, has ended a call; the last one tells.
  void end(int64_t call);
  /// After a failure: whether no device was in a call that it has not ended.
  bool hasEndedAll() const { return parts == 0; }

private:
  /// Why not; null: it has.
  const char *copyIn(SessionState &state, size_t device,
                     const CallSource::Places &places) const;
  bool copyOut(SessionState &state, size_t device,
               const CallSource::Places &places) const;
  bool setsCopies(const SessionState &state,
                  const CallSource::Places &places) const;

  const int64_t first;
  CallSource &source;
  const int32_t parties;
  std::atomic<int32_t> parts{0}; ///< of calls, that devices are in
  std::mutex mutex;
  std::map<int64_t, int32_t> ends; ///< of calls: who has ended them
};

} // namespace baechi::runtime

#endif // BAECHI_RUNTIME_SESSION_OVERLAPPEDCALLS_H

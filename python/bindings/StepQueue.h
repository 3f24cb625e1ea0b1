//===- StepQueue.h - Steps that run while Python goes on --------*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Runs the calls of one opened step in the order in which they were given, on
/// a thread of its own, or on that of whoever waits for one that has not begun:
/// no thread is woken for a call that is looked at at once. Where calls overlap
/// a run of them goes on as long as another one is there when the last has not
/// ended: their devices ask for them. Nothing here knows Python, so a call runs
/// and ends without the interpreter's lock.
///
//===----------------------------------------------------------------------===//
#ifndef BAECHI_PYTHON_STEPQUEUE_H
#define BAECHI_PYTHON_STEPQUEUE_H

#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include <sys/types.h>

namespace baechi::python {

/// As baechi_step_calls.
struct CallGiver {
  void *user;
  int (*next)(void *user, int64_t call, const void *const **arguments,
              void *const **results);
  void (*ended)(void *user, int64_t call);
};

struct QueuedCall;

/// The functions of a step library that a call needs, and what it opened.
struct OpenedStep {
  int (*call)(void *, const void *const *, void *const *);
  int64_t (*wallNs)(const void *);
  const char *(*error)(const void *);
  void *step;
  /// As baechi_step_call_lending and baechi_step_usable (Baechi/Runtime/
  /// StepLibrary.h); null: everything is copied.
  int (*lending)(void *, const void *const *, const unsigned char *,
                 void *const *) = nullptr;
  int (*usable)(const void *) = nullptr;
  /// As baechi_step_overlap (Baechi/Runtime/StepLibrary.h); null: calls run one
  /// by one.
  int (*overlap)(void *, int64_t, const CallGiver *, int64_t *) = nullptr;
  /// As baechi_step_overlap_lending; null: they are copied where calls overlap.
  int (*overlapLending)(void *, int64_t, const CallGiver *,
                        const unsigned char *(*lent)(void *, int64_t),
                        int64_t *) = nullptr;
  /// Of the step's program: so many calls may be under way.
  size_t devices = 1;

  /// One call, with these places; as baechi_step_call.
  int run(QueuedCall &call) const;
  /// As baechi_step_overlap; \p lent as for `overlapLending`.
  int runOverlapped(int64_t first, const CallGiver &giver,
                    const unsigned char *(*lent)(void *, int64_t),
                    int64_t &failed) const;
  /// Whether a device may still read what a call that has failed lent.
  bool isLeftBehind() const { return usable && usable(step) == 0; }
};

/// A call of a step. Who gave it keeps the memory that its places are of until
/// it has ended.
struct QueuedCall {
  /// Where arguments are read and results written; null for those that stay.
  std::vector<const void *> arguments;
  std::vector<void *> results;
  /// Of each argument, whether nobody writes to it until the call has ended.
  std::vector<unsigned char> lent;
  /// Python's numbers, and copies of what the caller may change meanwhile.
  std::vector<int64_t> numbers;
  std::vector<std::unique_ptr<std::byte[]>> copies;
  /// Calls whose values this one takes: it is not run if one of them fails.
  std::vector<std::shared_ptr<const QueuedCall>> after;
  /// Of them, those whose results this one reads where they were written: it
  /// begins on no device before they have ended on all.
  std::vector<std::shared_ptr<const QueuedCall>> reads;

  enum class State : uint8_t { Waiting, Running, Ended, Failed, NotRun };
  State state = State::Waiting; ///< under the queue's mutex
  /// Since its begin, or where calls overlap since the end of the one before.
  int64_t wallNs = 0;
  std::string error;
  /// It has failed, and a device may still read the arguments.
  bool isLeftBehind = false;
  std::chrono::steady_clock::time_point begun; ///< by the first device

  bool hasEnded() const { return state >= State::Ended; }
};

class StepQueue {
public:
  /// In a child of fork it is not destroyed: its thread is not there to end.
  static std::shared_ptr<StepQueue> create(const OpenedStep &opened);
  /// Ends what was given.
  ~StepQueue();
  /// A call that is not in the queue, while nothing is.
  int runNow(QueuedCall &call) const { return opened.run(call); }
  StepQueue(const StepQueue &) = delete;
  StepQueue &operator=(const StepQueue &) = delete;

  using Milliseconds = std::chrono::milliseconds;

  /// Whether another call may be given now: one runs and one waits at most, or
  /// where calls overlap one more than there are devices.
  bool waitForRoom(Milliseconds limit);
  /// Not in a child of fork, which has no thread for it.
  void give(std::shared_ptr<QueuedCall> call);

  /// False where the call has not ended within the limit. Runs it, and those
  /// before it, if nobody does.
  bool waitFor(const QueuedCall &call, Milliseconds limit);
  /// The same for all that were given.
  bool waitForAll(Milliseconds limit);
  QueuedCall::State stateOf(const QueuedCall &call) const;

  /// Between these nobody uses the queue, and nothing runs: for fork.
  void hold();
  void release() { mutex.unlock(); }

private:
  explicit StepQueue(const OpenedStep &opened) : opened(opened) {}
  bool isOfOtherProcess() const;
  void work();
  /// Runs the first call, which waits, or where \p mayOverlap a run of those
  /// that overlap; gives up \p lock meanwhile.
  void runFirst(std::unique_lock<std::mutex> &lock, bool mayOverlap);
  void runAlone(QueuedCall &call, std::unique_lock<std::mutex> &lock);
  void runOverlapped(std::unique_lock<std::mutex> &lock);
  int next(int64_t number, const void *const **arguments,
           void *const **results);
  const unsigned char *lentOf(int64_t number) const;
  void ended();
  void dropFirst(QueuedCall::State state);
  size_t mostCalls() const { return opened.overlap ? opened.devices + 1 : 2; }
  template <typename Reached>
  bool waitUntil(Reached reached, Milliseconds limit, bool mayRun);

  const OpenedStep opened;
  mutable std::mutex mutex;
  std::condition_variable changed;
  std::deque<std::shared_ptr<QueuedCall>> calls; ///< that have not ended
  int64_t firstNumber = 0; ///< of the first of them, or of the next
  bool isClosed = false;   ///< the run of calls that overlap takes no more
  std::chrono::steady_clock::time_point lastEnd;
  bool isRunning = false;
  bool isEnding = false;
  std::thread worker;
  pid_t process = 0; ///< in which the worker was started
};

} // namespace baechi::python

#endif // BAECHI_PYTHON_STEPQUEUE_H

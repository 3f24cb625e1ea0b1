//===- Session.h - A program loaded and ready to step -----------*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// A session holds what a program needs to run: an arena and a thread for each
/// device, the message queues between them. Its interface is meant for one
/// thread at a time; sessions are independent of each other.
///
//===----------------------------------------------------------------------===//
#ifndef BAECHI_RUNTIME_SESSION_H
#define BAECHI_RUNTIME_SESSION_H

#include "Baechi/Runtime/Error.h"
#include "Baechi/Runtime/Fault.h"
#include "Baechi/Runtime/Feeds.h"
#include "Baechi/Runtime/HostCalls.h"
#include "Baechi/Runtime/Program.h"
#include "Baechi/Runtime/Timeline.h"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string>

namespace baechi::runtime {

class Ranks;

/// The address of a symbol of the compiled program, null when there is none.
using SymbolResolver = std::function<void *(const std::string &name)>;

/// A function of the C interface (Abi.h): what a JIT must define before it
/// links a program.
struct AbiSymbol {
  const char *name;
  void *address;
};
std::span<const AbiSymbol> abiSymbols();

struct SessionOptions {
  /// Bytes that a device may use, by its name; a device that is not listed has
  /// the `memory` of the manifest.
  std::map<std::string, int64_t> memoryLimits;
  /// Keep each device's thread on a core of its own: the core at the device's
  /// position, modulo the usable ones.
  bool pinThreads = true;
  /// A step in which nothing begins or ends on any device for that long is
  /// given up, and so is the start of a device: that has a second more for
  /// every 256 MiB of its arena. 0: never.
  double watchdogSeconds = 60;
  /// How long an aborted step waits for devices that are still inside a kernel
  /// before it leaves them behind.
  double abortGraceSeconds = 2;
  /// Record begin and end of each operator and copy.
  bool timeline = true;
  /// Let devices load and allocate what their step needs before the first one,
  /// where that could keep them, or others, from going on. False: when it is
  /// first needed.
  bool rehearse = true;
  /// For tests: what makes calls of the runtime fail. Kept until the session's
  /// last thread has ended.
  std::shared_ptr<FaultInjector> faults;
  /// The processes that run the program together, each the devices that are its
  /// own; all create the session. Null: this process has all devices.
  std::shared_ptr<Ranks> ranks;
};

class Session {
public:
  /// Loads a program. Nothing is started when a rule of the manifest is broken,
  /// an arena exceeds its device's limit, the host arenas together exceed the
  /// memory that is free, or a symbol is missing; whatever was started is
  /// stopped and released when a device cannot be.
  static Expected<std::unique_ptr<Session>>
  create(Program program, const SymbolResolver &resolve,
         SessionOptions options = {});

  /// On a rank that cannot load the program which the others create a session
  /// of: theirs fail for that reason, too.
  static Error decline(Ranks &ranks, const Error &why);

  /// Ends the device threads and releases the arenas. A thread that a step had
  /// to leave behind in a kernel is left to the process together with what it
  /// may still touch; see `usable`.
  ~Session();
  Session(const Session &) = delete;
  Session &operator=(const Session &) = delete;

  const Program &program() const;

  /// Copies a value into an argument's place (zeros until then) or out of it;
  /// `bytes` must be the argument's size.
  Error setArgument(size_t index, const void *data, size_t bytes);
  Error getArgument(size_t index, void *data, size_t bytes) const;
  /// Copies out a result of the last step, which must have succeeded.
  Error getResult(size_t index, void *data, size_t bytes) const;

  /// Lets the host program compute the program's host calls; a step that has
  /// one fails without. Between steps.
  void setHostCalls(HostCalls calls);

  /// Runs one step on all devices and waits for its end; the calling thread
  /// runs one of them where the program surely ends (Program::ends) and is
  /// predicted to do so soon. After an error the
  /// session can run the next step, as long as it is `usable`; arguments that
  /// the program updates hold unspecified values until they are set again.
  Error step();

  /// A step with all that goes before and after it: copies in the arguments
  /// whose place in \p arguments is not null, steps, and copies out the results
  /// whose place in \p results is not null. There are as many places as the
  /// program has arguments and results, each of as many bytes. What lies on the
  /// GPU where a device is goes there and back as parts of the step, which
  /// alone is waited for: on the GPU after what its legacy stream was told
  /// before.
  ///
  /// \p lent: null, or for each argument whether the caller lends it. A host
  /// device reads what is lent, not 0, and lendable where the caller has it,
  /// if that is aligned to 64 bytes; nobody may write to it until the call has
  /// returned, and if the session is not `usable` then it must stay for good.
  /// What was read there has no value afterwards: before another step, or
  /// whoever asks for it, it must be set or given.
  Error call(const void *const *arguments, void *const *results,
             const uint8_t *lent = nullptr);

  /// The same, but where the program has one device, which is a GPU, and all
  /// results are to go to that GPU's memory it returns when the GPU has been
  /// told all of it. \p end is then a CUevent that is reached when the call has
  /// ended, the caller's to destroy; the legacy stream waits for it. Until then
  /// what lies on the GPU of \p arguments and \p results must stay. Null: the
  /// call has ended. What goes wrong on the GPU after the return is told by
  /// whoever waits for the event, and by the next call.
  Error begin(const void *const *arguments, void *const *results, void **end);

  /// Runs \p count steps that overlap, and waits for the end of all: a device
  /// begins its next step when its own part of the last one has ended and all
  /// of its messages were delivered, so that it is at most one step ahead of a
  /// device that it exchanges messages with. Results are those of separate
  /// steps, bit for bit. An argument in \p feeds gets its next value before
  /// each step; each step's results in \p fetches are copied out. For host
  /// devices that ask nothing of the host program; else an error, and nothing
  /// was run. A device that fails ends all steps; what holds after an error is
  /// as for step(). The timeline has the time of all steps and each device's
  /// last one.
  Error steps(int64_t count, std::span<const Feed> feeds = {},
              std::span<const Fetch> fetches = {});

  /// Runs calls that overlap, of the numbers from \p first on, until \p source
  /// says that there is none, as `steps` runs steps: each device copies its
  /// arguments in before its part of a call, but for those that it reads where
  /// they are lent, and its results out after it.
  /// On other ranks, too, which get what is set there and send what is wanted.
  /// After an error \p failed, where it is not null, has the number of the call
  /// that failed, -1 if that is not known, as on another rank; calls that had
  /// not ended are unfinished. The timeline does not count what calls sent.
  Error overlapCalls(int64_t first, CallSource &source,
                     int64_t *failed = nullptr);

  /// Why `overlapCalls` would refuse ("with a device of kind 'pool'
  /// ('pool0')"); empty: it would not.
  std::string whySeparate() const;

  /// On another rank than 0, which calls nothing else: does what rank 0's
  /// session does, until that is destroyed or rank 0 dismisses its ranks
  /// (Ranks::dismissed). Fails when a rank is lost.
  Error follow();

  /// False after a step that left a device inside a kernel, or that failed on
  /// several ranks. Then only
  /// destruction is useful, and the program's code must stay mapped until the
  /// process ends, because a thread is still running it.
  bool usable() const;

  /// Pinned host memory held here for messages between GPUs that do not reach
  /// each other's memory, and between GPUs and other processes.
  int64_t stagingBytes() const;

  /// What a device's memory holds beside the arenas that were planned: code,
  /// graphs, libraries, and what else changed there since the device started,
  /// by its driver. Devices that share a GPU tell the sum; 0 for host devices
  /// and those of other processes. Grows with the second step, whose graphs
  /// later ones are.
  int64_t besideArena(size_t device) const;

  /// What the last step did, successful or not.
  const Timeline &timeline() const;
  /// Between steps: whether the next ones record what SessionOptions::timeline
  /// says. Steps of this process's GPUs are replayed as graphs where they do
  /// not; the timeline then has such a step's wall time alone.
  void recordTimes(bool wanted);
  /// Between steps: from now on the timeline of a program of one device has
  /// each operator's time as that of many repeats of it, where it is a GPU's:
  /// small kernels take as long to begin as to run. Steps take longer, and do
  /// the same. Other programs' timelines stay as they are.
  void repeatOperators();

private:
  class Implementation;
  explicit Session(std::unique_ptr<Implementation> implementation);
  /// \p lent of `call`, \p end of `begin`; null: of the other.
  Error callOrBegin(const void *const *arguments, void *const *results,
                    const uint8_t *lent, void **end);
  std::unique_ptr<Implementation> implementation;
};

} // namespace baechi::runtime

#endif // BAECHI_RUNTIME_SESSION_H

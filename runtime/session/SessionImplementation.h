//===- SessionImplementation.h - What a session is made of ------*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef BAECHI_RUNTIME_SESSION_SESSIONIMPLEMENTATION_H
#define BAECHI_RUNTIME_SESSION_SESSIONIMPLEMENTATION_H

#include "Baechi/Runtime/Session.h"
#include "core/ProcessNumber.h"
#include "session/SessionState.h"

#include <memory>
#include <optional>
#include <span>
#include <thread>
#include <vector>

namespace baechi::runtime {

class LedCalls;

class Session::Implementation {
public:
  Implementation(std::shared_ptr<SessionState> state, SessionOptions options)
      : state(std::move(state)), options(std::move(options)) {
    const Program &program = this->state->program;
    timeline.devices.resize(program.devices.size());
    for (size_t i = 0; i < program.devices.size(); ++i)
      timeline.devices[i].operators.resize(program.devices[i].operators.size());
    for (const QueueInfo &queue : program.queues)
      timeline.queues.emplace_back(queue.messages.size());
  }

  ~Implementation();

  static Expected<std::unique_ptr<Implementation>>
  create(Program program, const SymbolResolver &resolve, SessionOptions options,
         std::vector<std::string> inventories);
  Error start(const std::vector<int> &processors);
  Error connectRanks();
  Error step();
  /// What is wrong where an argument's place lacks its value, but for those in
  /// \p feeds.
  Error checkArguments(std::span<const Feed> feeds = {}) const;
  Error overlap(int64_t count, std::span<const Feed> feeds,
                std::span<const Fetch> fetches);
  Error followSteps(const Command &command);
  Error overlapCalls(int64_t first, CallSource &source, int64_t *failed);
  Error followCalls(int64_t first);
  std::string whySeparate() const;

  std::shared_ptr<SessionState> state;
  SessionOptions options;
  std::vector<std::thread> threads;
  /// The processor that each device's thread stays on; -1: none.
  std::vector<int> pinnedTo;
  /// What each rank's devices can lie on.
  std::vector<std::string> inventories;
  Timeline timeline;
  bool usable = true;
  bool hasResults = false;
  /// Calls have ended well, but what they carry did not arrive, for this
  /// reason.
  std::string lost;
  /// Rank 0, while calls overlap.
  std::shared_ptr<LedCalls> led;
  /// The other ranks have created the session too.
  bool following = false;
  const uint64_t process = processNumber();

private:
  Error runCalls(std::shared_ptr<OverlappedCalls> given, int64_t first,
                 int64_t *failed);
  int32_t workingHere() const;
  bool isForked() const;
  std::string whyUnable() const;
  Error unreached(const Error &error);
  Error runReleased(std::optional<size_t> own);
  std::optional<size_t> ownDevice() const;
  void runHere(size_t device);
  Error waitForStart();
  Error connectDevices();
  Error superviseStep();
  std::string describeLeft() const;
  void awaitMovers();
  void record();
};

} // namespace baechi::runtime

#endif // BAECHI_RUNTIME_SESSION_SESSIONIMPLEMENTATION_H

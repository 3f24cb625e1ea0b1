//===- FakeCalls.h - What all functions of the driver do -*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef BAECHI_UNITTESTS_RUNTIME_FAKECUDA_FAKECALLS_H
#define BAECHI_UNITTESTS_RUNTIME_FAKECUDA_FAKECALLS_H

#include "FakeEngine.h"

#include <cstring>
#include <string>

namespace fakecuda {

// CUDA's own numbers.
constexpr int success = 0, invalidValue = 1, outOfMemory = 2,
              invalidImage = 200, invalidContext = 201, noPeerAccess = 217,
              invalidHandle = 400, illegalState = 401, notFound = 500,
              notReady = 600, illegalAddress = 700, peerAlreadyEnabled = 704,
              contextDestroyed = 709, alreadyRegistered = 712,
              captureUnsupported = 900, captureInvalidated = 901;

inline int misuse(Engine &engine, const std::string &what, int code) {
  engine.checker.blame(what);
  return code;
}

/// Counts a call; what it must answer before it does anything.
inline int enter(Engine &engine, FakeContext *context, const char *name) {
  const FakeOptions &options = engine.options;
  if (++engine.calls == options.failCall ||
      (options.failFunction && std::strcmp(options.failFunction, name) == 0))
    return std::strncmp(name, "nccl", 4) == 0 ? options.ncclFailWith
                                              : options.failWith;
  if (Engine::capturing && !Engine::mayBeCaptured(name)) {
    Engine::capturing->capture->invalid = true;
    return misuse(engine, std::string(name) + " while its thread captures",
                  captureUnsupported);
  }
  return context ? context->broken : success;
}

/// A call that may wait until its GPU is idle, which a kernel of NCCL that
/// waits for another rank keeps it from.
inline void load(Engine &engine, const std::string &what) {
  ++engine.loads;
  for (const FakeCommunicator *communicator : engine.communicators)
    if (communicator->context == Engine::current &&
        communicator->ended < communicator->launched)
      engine.checker.blame(what + " while NCCL waits on the GPU");
}

/// Takes the time that a call is to take, before it begins.
inline void linger(Engine &engine, const char *name) {
  int microseconds = 0;
  {
    std::lock_guard<std::mutex> guard(engine.mutex);
    const char *slow = engine.options.slowFunction;
    if (slow && std::strcmp(slow, name) == 0)
      microseconds = engine.options.slowMicroseconds;
  }
  if (microseconds)
    std::this_thread::sleep_for(std::chrono::microseconds(microseconds));
}

/// Runs the body of a call with the lock held, in the thread's context.
template <typename Body>
int call(const char *name, bool needsContext, Body body) {
  Engine &engine = Engine::get();
  linger(engine, name);
  std::lock_guard<std::mutex> guard(engine.mutex);
  FakeContext *context = needsContext ? Engine::current : nullptr;
  if (int code = enter(engine, context, name))
    return code;
  if (needsContext && !context)
    return misuse(engine, std::string(name) + " without a current context",
                  invalidContext);
  return body(engine);
}

inline bool isAlive(Engine &engine, FakeStream *stream) {
  return engine.streams.count(stream) != 0;
}
inline bool isAlive(Engine &engine, FakeEvent *event) {
  return engine.events.count(event) != 0;
}

/// Begins a step of a stream: after all that the host has done and seen.
inline void beginStep(Engine &engine, FakeStream &stream) {
  engine.checker.order(stream.timeline, engine.checker.advance(Checker::host));
  engine.checker.advance(stream.timeline);
}

/// Has a stream reach an event when it comes to it.
inline void record(Engine &engine, FakeEvent &event, FakeStream &stream) {
  beginStep(engine, stream);
  event.clocks = engine.checker.clocksOf(stream.timeline);
  uint64_t number = ++event.asked;
  engine.enqueue(stream, {nullptr, 0, [&event, number] {
                            event.reached = number;
                            event.when = Clock::now();
                          }});
}
/// Has a stream wait for the last record of an event.
inline void await(Engine &engine, FakeEvent &event, FakeStream &stream) {
  engine.checker.order(stream.timeline, event.clocks);
  beginStep(engine, stream);
  engine.enqueue(stream, {&event, event.asked, nullptr});
}

} // namespace fakecuda

#endif // BAECHI_UNITTESTS_RUNTIME_FAKECUDA_FAKECALLS_H

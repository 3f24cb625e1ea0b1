//===- DeviceThread.cpp - The life of a device thread ---------------------===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "session/OverlappedCalls.h"

#include <pthread.h>
#include <sched.h>

#include <cstring>

using namespace baechi::runtime;

static Error pinThisThread(int processor) {
  // Not a cpu_set_t: a machine may have more processors than one holds.
  cpu_set_t *set = CPU_ALLOC(processor + 1);
  size_t bytes = CPU_ALLOC_SIZE(processor + 1);
  CPU_ZERO_S(bytes, set);
  CPU_SET_S(processor, bytes, set);
  int failed = pthread_setaffinity_np(pthread_self(), bytes, set);
  CPU_FREE(set);
  if (failed)
    return Error("cannot stay on processor " + std::to_string(processor) +
                 ": " + std::strerror(failed));
  return Error();
}

/// What fails in it is told as in a step, with the operator.
static Error rehearse(SessionState &state, size_t device) {
  baechi_context &context = state.exchange.context(device);
  if (context.idle || !state.rehearses)
    return Error();
  state.drivers[device]->rehearse(context);
  return state.exchange.aborted() ? Error(state.exchange.describeFailure())
                                  : Error();
}

static Error startDevice(SessionState &state, size_t device,
                         std::optional<int> processor) {
  const std::string &name = state.program.devices[device].name;
  pthread_setname_np(pthread_self(), name.substr(0, 15).c_str());
  Error error;
  if (processor)
    error = state.exchange.injected(Call::Pin)
                ? Error("injected fault: cannot stay on a processor")
                : pinThisThread(*processor);
  if (!error)
    error = state.exchange.injected(Call::StartDevice)
                ? Error("injected fault: cannot allocate an arena")
                : state.drivers[device]->start();
  return error ? Error("device " + name + ": " + error.message())
               : rehearse(state, device);
}

bool baechi::runtime::runStep(SessionState &state, size_t device) {
  baechi_context &context = state.exchange.context(device);
  if (int32_t code = state.drivers[device]->run(&context)) {
    state.exchange.fail(context,
                        {"its step function returned", nullptr, -1, -1, code});
    return false;
  }
  if (!state.exchange.injected(Call::EndStep))
    return true;
  state.exchange.fail(context, {"injected fault: its step function failed"});
  return false;
}

/// One step after the other, whatever other devices do. What goes in and out
/// between them is copied here, where no device reads or writes it.
static bool runOverlapped(SessionState &state, size_t device) {
  baechi_context &context = state.exchange.context(device);
  const Program &program = state.program;
  for (int64_t step = 0; step < state.overlap.steps; ++step) {
    for (const Feed &feed : state.overlap.feeds)
      if (const ArgumentInfo &argument = program.arguments[feed.argument];
          !writeOwnParts(state, device, argument,
                         feed.values + step * argument.bytes))
        return state.exchange.fail(context, {"an argument cannot be copied"}) ==
               0;
    bool isLast = step + 1 == state.overlap.steps;
    if (!runStep(state, device) || state.exchange.leaveStep(context, isLast))
      return false;
    for (const Fetch &fetch : state.overlap.fetches)
      if (const BufferInfo &result = program.results[fetch.result];
          !readOwnParts(state, device, result,
                        fetch.values + step * result.bytes))
        return state.exchange.fail(context, {"a result cannot be copied"}) == 0;
  }
  return true;
}

void baechi::runtime::runPart(SessionState &state, size_t device) {
  if (state.isElsewhere(device)) // runs the relay, to the end of all steps
    (void)runStep(state, device);
  else if (state.calls)
    state.calls->run(state, device);
  else if (state.overlap.steps > 0)
    (void)runOverlapped(state, device);
  else if (runStep(state, device))
    (void)state.exchange.awaitCarried(state.exchange.context(device));
  state.exchange.finishPart(state.exchange.context(device));
}

void baechi::runtime::runDevice(const std::shared_ptr<SessionState> &state,
                                size_t device, std::optional<int> processor) {
  baechi_context &context = state->exchange.context(device);
  thisDevice = &context;
  state->startErrors[device] = startDevice(*state, device, processor);
  context.finished.store(true, std::memory_order_release);
  std::atomic<uint32_t> &releases = state->releases[device].count;
  uint32_t seen = 0;
  state->arrive();
  if (context.idle)
    return state->stopping.wait(false, std::memory_order_acquire);
  for (;;) {
    releases.wait(seen, std::memory_order_acquire);
    ++seen;
    if (state->stopping.load(std::memory_order_acquire))
      return;
    runPart(*state, device);
    state->arrive();
  }
}

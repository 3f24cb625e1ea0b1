//===- DeviceThread.cpp - The life of a device thread ---------------------===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "session/SessionState.h"

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
  return error ? Error("device " + name + ": " + error.message()) : Error();
}

void baechi::runtime::runPart(SessionState &state, size_t device) {
  baechi_context &context = state.exchange.context(device);
  if (int32_t code = state.drivers[device]->run(&context))
    state.exchange.fail(context,
                        {"its step function returned", nullptr, -1, -1, code});
  else if (state.exchange.injected(Call::EndStep))
    state.exchange.fail(context, {"injected fault: its step function failed"});
  context.finished.store(true, std::memory_order_release);
}

void baechi::runtime::runDevice(const std::shared_ptr<SessionState> &state,
                                size_t device, std::optional<int> processor) {
  state->startErrors[device] = startDevice(*state, device, processor);
  baechi_context &context = state->exchange.context(device);
  thisDevice = &context;
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

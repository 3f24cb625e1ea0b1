//===- RuntimeBenchmark.cpp - Messages and step overhead ------------------===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// What the runtime adds to kernels and copies: a step with nothing in it, an
/// operator with nothing in it, a message against memcpy of its bytes.
///
//===----------------------------------------------------------------------===//

#include "Baechi/Runtime/Abi.h"
#include "Baechi/Runtime/Session.h"

#include <benchmark/benchmark.h>

#include <chrono>
#include <cstring>
#include <vector>

using namespace baechi::runtime;

namespace {

/// Messages each way, or operators, in a step.
int32_t count = 0;

int32_t runOperators(baechi_context *context, char *) {
  for (int32_t i = 0; i < count; ++i) {
    baechi_operator_begin(context, i);
    baechi_operator_end(context, i);
  }
  return 0;
}

/// Queue 0 goes from device 0 to 1, queue 1 back: one message at a time.
int32_t sendFirst(baechi_context *context, char *arena) {
  for (int32_t i = 0; i < count; ++i)
    if (baechi_recv(context, 1, i, arena) ||
        baechi_send(context, 0, i, arena) || baechi_await_send(context, 0, i) ||
        baechi_await_recv(context, 1, i))
      return 1;
  return 0;
}
int32_t sendBack(baechi_context *context, char *arena) {
  for (int32_t i = 0; i < count; ++i)
    if (baechi_recv(context, 0, i, arena) || baechi_await_recv(context, 0, i) ||
        baechi_send(context, 1, i, arena) || baechi_await_send(context, 1, i))
      return 1;
  return 0;
}

void *resolve(const std::string &name) {
  return reinterpret_cast<void *>(name == "sendFirst"  ? sendFirst
                                  : name == "sendBack" ? sendBack
                                                       : runOperators);
}

DeviceInfo device(const char *name, const char *entry, int64_t bytes) {
  return {name, "host", entry, bytes, bytes, {}};
}

std::unique_ptr<Session> load(Program program, benchmark::State &state,
                              bool timeline) {
  SessionOptions options;
  options.timeline = timeline;
  auto session = Session::create(std::move(program), resolve, options);
  if (session)
    return std::move(*session);
  state.SkipWithError(session.error().message().c_str());
  return nullptr;
}

bool step(Session &session, benchmark::State &state) {
  Error error = session.step();
  if (error)
    state.SkipWithError(error.message().c_str());
  return !error;
}

/// Arguments: devices.
void emptyStep(benchmark::State &state) {
  count = 0;
  Program program;
  const char *names[] = {"host0", "host1", "host2", "host3"};
  for (int64_t i = 0; i < state.range(0); ++i)
    program.devices.push_back(device(names[i], "runOperators", 0));
  auto session = load(std::move(program), state, /*timeline=*/false);
  for (auto _ : state)
    if (!session || !step(*session, state))
      break;
}
BENCHMARK(emptyStep)->Arg(1)->Arg(2)->Arg(4)->UseRealTime();

/// Arguments: timeline on or off. Items are operators.
void emptyOperators(benchmark::State &state) {
  count = 10000;
  Program program;
  program.devices.push_back(device("host0", "runOperators", 0));
  program.devices[0].operators.resize(size_t(count));
  auto session = load(std::move(program), state, state.range(0) != 0);
  for (auto _ : state)
    if (!session || !step(*session, state))
      break;
  state.SetItemsProcessed(state.iterations() * count);
}
BENCHMARK(emptyOperators)->ArgName("timeline")->Arg(0)->Arg(1)->UseRealTime();

/// Nanoseconds of one memcpy between two buffers, the best of several rounds.
double memcpyNs(size_t bytes) {
  std::vector<char> from(bytes, 1), to(bytes, 2);
  size_t repetitions = 1 + (size_t(8) << 20) / (bytes + 64);
  double best = 1e30;
  for (int round = 0; round < 5; ++round) {
    auto begin = std::chrono::steady_clock::now();
    for (size_t i = 0; i < repetitions; ++i) {
      std::memcpy(to.data(), from.data(), bytes);
      benchmark::DoNotOptimize(to.data());
      benchmark::ClobberMemory();
    }
    std::chrono::duration<double, std::nano> time =
        std::chrono::steady_clock::now() - begin;
    best = std::min(best, time.count() / double(repetitions));
  }
  return best;
}

/// Arguments: bytes. Items are messages; `memcpy_ratio` is the time of a
/// message over that of a memcpy whose both buffers one core owns.
void message(benchmark::State &state) {
  count = 100;
  int64_t bytes = state.range(0);
  Program program;
  program.devices = {device("host0", "sendFirst", bytes),
                     device("host1", "sendBack", bytes)};
  std::vector<MessageInfo> messages(size_t(count), {"", bytes, 0, 0});
  program.queues = {{0, 1, messages}, {1, 0, messages}};
  auto session = load(std::move(program), state, /*timeline=*/false);
  double ns = 0;
  for (auto _ : state) {
    if (!session || !step(*session, state))
      break;
    ns += double(session->timeline().wallNs);
  }
  int64_t sent = state.iterations() * 2 * count;
  state.SetItemsProcessed(sent);
  state.SetBytesProcessed(sent * bytes);
  state.counters["message_ns"] = ns / double(sent);
  if (bytes > 0)
    state.counters["memcpy_ratio"] =
        ns / double(sent) / memcpyNs(size_t(bytes));
}
BENCHMARK(message)
    ->Arg(0)
    ->Arg(1 << 10)
    ->Arg(1 << 14)
    ->Arg(1 << 18)
    ->Arg(1 << 22)
    ->Arg(1 << 24)
    ->UseRealTime();

} // namespace

BENCHMARK_MAIN();

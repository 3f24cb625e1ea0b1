//===- LinkMeasure.cpp - Measuring messages -------------------------------===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Baechi/Runtime/Abi.h"
#include "Baechi/Runtime/Machine.h"
#include "Baechi/Runtime/Session.h"
#include "core/Exchange.h"

#include <algorithm>
#include <utility>

using namespace baechi::runtime;

// The program that is measured: device 0 sends each message of queue 0 and gets
// it back as the message of the same position in queue 1. Operator i of device
// 0 is round trip i.

static int32_t startRoundTrips(baechi_context *context, char *arena) {
  size_t rounds = context->operators.size();
  for (int32_t i = 0; size_t(i) < rounds; ++i) {
    baechi_operator_begin(context, i);
    if (baechi_recv(context, 1, i, arena) ||
        baechi_send(context, 0, i, arena) || baechi_await_send(context, 0, i) ||
        baechi_await_recv(context, 1, i))
      return Exchange::Stop;
    baechi_operator_end(context, i);
  }
  return 0;
}

static int32_t returnMessages(baechi_context *context, char *arena) {
  size_t rounds = context->exchange.channels()[0].slots.size();
  for (int32_t i = 0; size_t(i) < rounds; ++i)
    if (baechi_recv(context, 0, i, arena) || baechi_await_recv(context, 0, i) ||
        baechi_send(context, 1, i, arena) || baechi_await_send(context, 1, i))
      return Exchange::Stop;
  return 0;
}

static Program roundTripProgram(const std::vector<int64_t> &messageBytes,
                                int64_t arenaBytes) {
  Program program;
  program.devices = {
      {"first", "host", "startRoundTrips", arenaBytes, arenaBytes, {}},
      {"second", "host", "returnMessages", arenaBytes, arenaBytes, {}}};
  program.queues = {{0, 1, {}}, {1, 0, {}}};
  for (int64_t bytes : messageBytes) {
    program.devices[0].operators.push_back({"round trip", "", 0, 0});
    for (QueueInfo &queue : program.queues)
      queue.messages.push_back({"", bytes, 0, 0});
  }
  return program;
}

static void *resolveRoundTrip(const std::string &name) {
  return reinterpret_cast<void *>(name == "startRoundTrips" ? startRoundTrips
                                                            : returnMessages);
}

Expected<LinkFit>
baechi::runtime::measureHostLink(const LinkMeasureOptions &options) {
  if (options.largestBytes < 1 || options.repetitions < 1)
    return Error("a link is measured with at least one repetition and sizes "
                 "up to at least one byte");
  std::vector<int64_t> sizes = {0};
  for (int64_t bytes = 1; bytes <= options.largestBytes; bytes *= 4) {
    sizes.push_back(bytes);
    if (bytes > options.largestBytes / 4)
      break; // The next could overflow.
  }
  size_t rounds = size_t(options.repetitions) + 1;
  std::vector<int64_t> messageBytes;
  for (int64_t bytes : sizes)
    messageBytes.insert(messageBytes.end(), rounds, bytes);

  auto session = Session::create(roundTripProgram(messageBytes, sizes.back()),
                                 resolveRoundTrip);
  if (!session)
    return session.takeError();
  if (Error error = (*session)->step())
    return error;
  const std::vector<Interval> &trips =
      (*session)->timeline().devices[0].operators;
  std::vector<TransferSample> samples;
  for (size_t i = 0; i < sizes.size(); ++i) {
    std::vector<int64_t> times;
    for (size_t k = 1; k < rounds; ++k) // The first warms the caches.
      times.push_back(trips[i * rounds + k].durationNs());
    auto median = times.begin() + std::ptrdiff_t(times.size() / 2);
    std::nth_element(times.begin(), median, times.end());
    samples.push_back({sizes[i], double(*median) / 2});
  }
  return fitLink(samples);
}

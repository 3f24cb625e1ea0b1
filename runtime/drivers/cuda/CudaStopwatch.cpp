//===- CudaStopwatch.cpp - Times of work on a compute stream -*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "drivers/cuda/CudaStopwatch.h"
#include "drivers/cuda/CudaDevice.h"

#include <algorithm>
#include <thread>

using namespace baechi::runtime;
using namespace baechi::runtime::cuda;

/// Launches and events take microseconds; a sample shall take longer.
static constexpr double sampleNs = 200000;
static constexpr double mostCalls = 64;
static const char *const cannotBeTimed = "work cannot be timed";

Problem Stopwatch::open() {
  for (Event *event : {&begin, &end})
    if (!*event)
      if (Problem problem =
              device.check(device.api().eventCreate(event, eventDefault),
                           "an event cannot be created"))
        return problem;
  return {};
}

void Stopwatch::close() {
  for (Event *event : {&begin, &end}) {
    if (*event)
      device.api().eventDestroy(*event);
    *event = nullptr;
  }
}

void Stopwatch::release(Repeats &repeats) {
  if (repeats.graph)
    device.api().graphExecDestroy(repeats.graph);
  repeats = {};
}

Problem Stopwatch::time(const std::function<Problem()> &begun, double &ns) {
  const Api &api = device.api();
  Stream stream = device.computeStream();
  Problem problem = device.check(api.eventRecord(begin, stream), cannotBeTimed);
  if (!problem)
    problem = begun();
  if (!problem)
    problem = device.check(api.eventRecord(end, stream), cannotBeTimed);
  while (!problem) {
    Result state = api.eventQuery(end);
    if (state != notReady) {
      problem = device.check(state, cannotBeTimed);
      break;
    }
    std::this_thread::yield();
  }
  float milliseconds = 0;
  if (!problem)
    problem = device.check(api.eventElapsed(&milliseconds, begin, end),
                           cannotBeTimed);
  ns = double(milliseconds) * 1e6;
  return problem;
}

GraphExec Stopwatch::capture(const Work &work, int64_t calls) {
  const Api &api = device.api();
  if (api.beginCapture(device.computeStream(), captureThreadLocal))
    return nullptr;
  Problem problem;
  for (int64_t i = 0; i < calls && !problem; ++i)
    problem = work(/*capturing=*/true);
  // Ends in any case.
  Graph graph = nullptr;
  GraphExec executable = nullptr;
  if (api.endCapture(device.computeStream(), &graph) == success && !problem &&
      api.graphInstantiate(&executable, graph, 0))
    executable = nullptr;
  if (graph)
    api.graphDestroy(graph);
  return executable;
}

Problem Stopwatch::prepare(const Work &work, int warmUps, Repeats &repeats) {
  double once = 0;
  for (int run = 0; run < warmUps; ++run)
    if (Problem problem = time([&] { return work(false); }, once))
      return problem;
  repeats.calls =
      int64_t(std::clamp(sampleNs / std::max(once, 1.0), 1.0, mostCalls));
  repeats.graph = capture(work, repeats.calls);
  return {};
}

Problem Stopwatch::sample(const Work &work, const Repeats &repeats,
                          double &ns) {
  auto launch = [&]() -> Problem {
    return device.check(
        device.api().graphLaunch(repeats.graph, device.computeStream()),
        "a graph of repeats cannot be launched");
  };
  // The first launch of a graph moves it to the GPU, and each takes
  // microseconds to get there: both happen behind one that is not timed.
  if (repeats.graph)
    if (Problem problem = launch())
      return problem;
  auto begun = [&]() -> Problem {
    if (repeats.graph)
      return launch();
    Problem problem;
    for (int64_t i = 0; i < repeats.calls && !problem; ++i)
      problem = work(false);
    return problem;
  };
  Problem problem = time(begun, ns);
  ns /= double(repeats.calls);
  return problem;
}

//===- FakeGraphs.cpp - Launches, one by one and captured -*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// A graph is the calls that were captured: each puts its work on the stream
/// that the graph is launched on, and is checked then.
///
//===----------------------------------------------------------------------===//

#include "FakeCalls.h"

#include <array>
#include <cstring>

using namespace fakecuda;

/// What the captures of threads may hold.
bool Engine::mayBeCaptured(const std::string &call) {
  return call == "cuLaunchKernel" || call == "cuMemcpyAsync" ||
         call == "cuStreamEndCapture" || call == "cuModuleGetFunction";
}

int Engine::issue(FakeStream &stream, FakeGraph::Node node) {
  if (!stream.capture) {
    node(stream);
    return success;
  }
  if (capturing != &stream)
    return misuse(*this, "a thread works on a stream that another captures",
                  captureUnsupported);
  stream.capture->nodes.push_back(std::move(node));
  return success;
}

/// Parameters are copied when a kernel is launched, as CUDA does.
using Values = std::array<uint64_t, mostParameters>;

static void launch(Engine &engine, FakeStream &stream, const FakeKernel &kernel,
                   Values values) {
  beginStep(engine, stream);
  for (size_t i = 0; i < kernel.accessCount; ++i) {
    const FakeAccess &access = kernel.accesses[i];
    uintptr_t begin = values[size_t(access.parameter)];
    std::string who = "kernel " + std::string(kernel.name);
    if (engine.deviceOf(begin) == Engine::host)
      engine.checker.blame(who + " is given memory that is not the device's");
    engine.reaches(*stream.context, begin, who);
    engine.checker.use(stream.timeline, begin, access.bytes, access.writes,
                       who);
  }
  int number = ++engine.launches;
  FakeContext *context = stream.context;
  engine.enqueue(stream, {nullptr, 0, [=, &kernel, &engine]() mutable {
                            if (number == engine.options.hangLaunch) {
                              engine.hanging = true;
                              return;
                            }
                            if (number == engine.options.breakLaunch) {
                              context->broken = illegalAddress;
                              return;
                            }
                            void *pointers[mostParameters];
                            for (size_t i = 0; i < mostParameters; ++i)
                              pointers[i] = &values[i];
                            kernel.run(pointers);
                          }});
}

/// The limits of all GPUs since 2012; of shared memory what a kernel gets
/// without having asked for more.
static bool isLaunchable(std::array<uint64_t, 3> grid,
                         std::array<uint64_t, 3> block, unsigned sharedBytes) {
  uint64_t threads = block[0] * block[1] * block[2];
  return grid[0] * grid[1] * grid[2] > 0 && grid[0] < uint64_t(1) << 31 &&
         grid[1] <= 65535 && grid[2] <= 65535 && threads > 0 &&
         threads <= 1024 && block[2] <= 64 && sharedBytes <= 48 << 10;
}

extern "C" {

int fakeCudaGraphLaunches() {
  Engine &engine = Engine::get();
  std::lock_guard<std::mutex> guard(engine.mutex);
  return engine.graphLaunches;
}

int cuLaunchKernel(FakeFunction *function, unsigned gx, unsigned gy,
                   unsigned gz, unsigned bx, unsigned by, unsigned bz,
                   unsigned sharedBytes, FakeStream *stream, void **parameters,
                   void **) {
  return call("cuLaunchKernel", true, [&](Engine &engine) {
    if (!isLaunchable({gx, gy, gz}, {bx, by, bz}, sharedBytes))
      return invalidValue;
    if (!isAlive(engine, stream))
      return misuse(engine, "cuLaunchKernel on a dead stream", invalidHandle);
    if (function->context != stream->context)
      return misuse(engine, "a kernel is launched in another context",
                    invalidHandle);
    const FakeKernel &kernel = *function->kernel;
    Values values{};
    for (size_t i = 0; i < kernel.parameterCount; ++i)
      std::memcpy(&values[i], parameters[i], parameterBytes);
    return engine.issue(*stream, [=, &kernel, &engine](FakeStream &on) {
      launch(engine, on, kernel, values);
    });
  });
}

int cuStreamBeginCapture_v2(FakeStream *stream, int mode) {
  return call("cuStreamBeginCapture", true, [&](Engine &engine) {
    if (!isAlive(engine, stream) || stream->context != Engine::current)
      return misuse(engine, "a dead or another context's stream is captured",
                    invalidHandle);
    if (stream->capture)
      return misuse(engine, "a stream is captured twice", illegalState);
    if (mode != 1)
      return misuse(engine, "a capture that hinders other threads",
                    invalidValue);
    stream->capture = std::make_unique<FakeGraph>();
    stream->capture->context = stream->context;
    Engine::capturing = stream;
    return success;
  });
}

/// Ends the capture whether it succeeds or not.
int cuStreamEndCapture(FakeStream *stream, FakeGraph **graph) {
  std::unique_ptr<FakeGraph> captured;
  *graph = nullptr;
  {
    Engine &engine = Engine::get();
    std::lock_guard<std::mutex> guard(engine.mutex);
    if (!isAlive(engine, stream) || Engine::capturing != stream)
      return misuse(engine, "a capture is ended that its thread did not begin",
                    illegalState);
    captured = std::move(stream->capture);
    Engine::capturing = nullptr;
  }
  return call("cuStreamEndCapture", true, [&](Engine &engine) {
    if (captured->invalid)
      return captureInvalidated;
    *graph = captured.release();
    engine.graphs.insert(*graph);
    return success;
  });
}

int cuGraphInstantiateWithFlags(FakeExecutable **executable, FakeGraph *graph,
                                unsigned long long flags) {
  return call("cuGraphInstantiateWithFlags", true, [&](Engine &engine) {
    if (!engine.graphs.count(graph) || flags != 0)
      return misuse(engine, "a dead graph is instantiated", invalidValue);
    *executable = new FakeExecutable{graph->context, graph->nodes,
                                     std::make_shared<int>(0)};
    engine.executables.insert(*executable);
    return success;
  });
}
int cuGraphDestroy(FakeGraph *graph) {
  return call("cuGraphDestroy", false, [&](Engine &engine) {
    if (!engine.graphs.erase(graph))
      return misuse(engine, "a graph is destroyed twice", invalidValue);
    delete graph;
    return success;
  });
}
int cuGraphExecDestroy(FakeExecutable *executable) {
  return call("cuGraphExecDestroy", false, [&](Engine &engine) {
    if (!engine.executables.erase(executable))
      return misuse(engine, "an executable graph is destroyed twice",
                    invalidValue);
    if (*executable->running && !executable->context->broken)
      engine.checker.blame("a graph is destroyed that runs");
    delete executable;
    return success;
  });
}
int cuGraphLaunch(FakeExecutable *executable, FakeStream *stream) {
  return call("cuGraphLaunch", true, [&](Engine &engine) {
    if (!engine.executables.count(executable) || !isAlive(engine, stream))
      return misuse(engine, "cuGraphLaunch of a dead graph or stream",
                    invalidHandle);
    if (executable->context != stream->context)
      return misuse(engine, "a graph is launched in another context",
                    invalidHandle);
    ++engine.graphLaunches;
    ++*executable->running;
    for (const FakeGraph::Node &node : executable->nodes)
      node(*stream);
    engine.enqueue(
        *stream, {nullptr, 0, [running = executable->running] { --*running; }});
    return success;
  });
}
}

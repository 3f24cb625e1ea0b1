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
/// that the graph is launched on, or on a lane beside it, and is checked then.
/// A node shares a lane with one that it must follow, else it has its own, and
/// waits for events of what it must follow elsewhere: lanes run in any order
/// that these allow, as streams do.
///
//===----------------------------------------------------------------------===//

#include "FakeCalls.h"

#include <algorithm>
#include <array>
#include <cstring>

using namespace fakecuda;

/// What the captures of threads may hold.
bool Engine::mayBeCaptured(const std::string &call) {
  return call == "cuLaunchKernel" || call == "cuMemcpyAsync" ||
         call == "cuStreamEndCapture" || call == "cuModuleGetFunction" ||
         call == "cuStreamGetCaptureInfo" ||
         call == "cuStreamUpdateCaptureDependencies";
}

int Engine::issue(FakeStream &stream, FakeNode::Issue work) {
  if (!stream.capture) {
    work(stream);
    return success;
  }
  if (capturing != &stream)
    return misuse(*this, "a thread works on a stream that another captures",
                  captureUnsupported);
  FakeGraph &graph = *stream.capture;
  graph.nodes.push_back(
      std::make_shared<FakeNode>(FakeNode{std::move(work), graph.next}));
  graph.next = {graph.nodes.back().get()};
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

using Nodes = std::vector<std::shared_ptr<FakeNode>>;

/// The number of each node of a graph, none of which comes before one that it
/// follows.
static std::map<const FakeNode *, size_t> numbersOf(const Nodes &nodes) {
  std::map<const FakeNode *, size_t> numbers;
  for (const auto &node : nodes)
    numbers.emplace(node.get(), numbers.size());
  return numbers;
}

static int longestChainOf(const Nodes &nodes) {
  auto numbers = numbersOf(nodes);
  std::vector<int> lengths;
  int longest = 0;
  for (const auto &node : nodes) {
    int length = 0;
    for (const FakeNode *before : node->after)
      length = std::max(length, lengths[numbers.at(before)]);
    lengths.push_back(++length);
    longest = std::max(longest, length);
  }
  return longest;
}

/// The lane that runs each node: 0 is the stream itself.
static std::vector<size_t>
lanesOf(const Nodes &nodes, const std::map<const FakeNode *, size_t> &numbers) {
  std::vector<size_t> lanes;
  std::vector<size_t> lastOf; // of each lane
  for (size_t number = 0; number < nodes.size(); ++number) {
    size_t lane = lastOf.size();
    for (const FakeNode *before : nodes[number]->after)
      if (size_t last = numbers.at(before); lastOf[lanes[last]] == last)
        lane = std::min(lane, lanes[last]);
    lastOf.resize(std::max(lastOf.size(), lane + 1));
    lastOf[lane] = number;
    lanes.push_back(lane);
  }
  return lanes;
}

static void launch(Engine &engine, FakeExecutable &executable,
                   FakeStream &stream) {
  const Nodes &nodes = executable.nodes;
  auto numbers = numbersOf(nodes);
  std::vector<size_t> lanes = lanesOf(nodes, numbers);
  size_t count = nodes.empty() ? 0 : *std::ranges::max_element(lanes) + 1;
  while (stream.lanes.size() + 1 < count)
    stream.lanes.push_back(std::make_unique<FakeStream>(
        FakeStream{stream.context, engine.checker.addTimeline(), {}}));
  auto on = [&](size_t number) -> FakeStream & {
    return lanes[number] == 0 ? stream : *stream.lanes[lanes[number] - 1];
  };
  auto end = [&](size_t number) -> FakeEvent & {
    return *executable.ends[number];
  };
  // The last event is reached when the graph begins.
  while (executable.ends.size() <= nodes.size())
    executable.ends.push_back(std::make_unique<FakeEvent>(
        FakeEvent{stream.context, false, 0, 0, {}, {}}));
  record(engine, end(nodes.size()), stream);
  for (size_t lane = 1; lane < count; ++lane)
    await(engine, end(nodes.size()), *stream.lanes[lane - 1]);
  for (size_t number = 0; number < nodes.size(); ++number) {
    for (const FakeNode *before : nodes[number]->after)
      if (size_t other = numbers.at(before); lanes[other] != lanes[number])
        await(engine, end(other), on(number));
    nodes[number]->issue(on(number));
    record(engine, end(number), on(number));
  }
  for (size_t number = 0; number < nodes.size(); ++number)
    if (lanes[number] != 0)
      await(engine, end(number), stream);
}

extern "C" {

int fakeCudaLongestChain() {
  Engine &engine = Engine::get();
  std::lock_guard<std::mutex> guard(engine.mutex);
  return engine.longestChain;
}

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

int cuStreamGetCaptureInfo_v3(FakeStream *stream, int *status, uint64_t *,
                              FakeGraph **, FakeNode *const **dependencies,
                              const void **edges, size_t *count) {
  return call("cuStreamGetCaptureInfo", true, [&](Engine &engine) {
    if (!isAlive(engine, stream) || Engine::capturing != stream)
      return misuse(engine, "a capture is asked for that is not the thread's",
                    illegalState);
    *status = 1;
    *dependencies = stream->capture->next.data();
    *edges = nullptr;
    *count = stream->capture->next.size();
    return success;
  });
}
int cuStreamUpdateCaptureDependencies_v2(FakeStream *stream,
                                         FakeNode **dependencies,
                                         const void *edges, size_t count,
                                         unsigned flags) {
  return call("cuStreamUpdateCaptureDependencies", true, [&](Engine &engine) {
    if (!isAlive(engine, stream) || Engine::capturing != stream)
      return misuse(engine, "a capture is told of that is not the thread's",
                    illegalState);
    std::set<FakeNode *> all(dependencies, dependencies + count);
    for (const auto &node : stream->capture->nodes)
      all.erase(node.get());
    std::set<FakeNode *> different(dependencies, dependencies + count);
    if (flags != 1 || edges || !all.empty() || different.size() != count)
      return misuse(engine, "a capture is told of other nodes than its own",
                    invalidValue);
    stream->capture->next.assign(dependencies, dependencies + count);
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
    engine.longestChain = longestChainOf(graph->nodes);
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
    // Streams may still come to these.
    for (auto &event : executable->ends)
      engine.retired.push_back(std::move(event));
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
    launch(engine, *executable, *stream);
    engine.enqueue(
        *stream, {nullptr, 0, [running = executable->running] { --*running; }});
    return success;
  });
}
}
